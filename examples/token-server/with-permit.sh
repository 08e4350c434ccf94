#!/bin/sh
# Runs a command once a token server has granted a permit for it:
#
#   with-permit.sh POLICY KEY COMMAND…
#
# TOKEN_SERVERS  addresses, separated by spaces (the first that answers decides)
# MAX_WAIT       the longest wait for a permit in seconds, 60 by default
#
# Exits with the command's status, with 75 if no permit is granted in time, 69 if no server answers, or 64 if the request is invalid.
set -u
[ $# -ge 3 ] || { echo "usage: $0 POLICY KEY COMMAND..." >&2; exit 64; }
policy=$1 key=$2
shift 2
wait_until=$(($(date +%s) + ${MAX_WAIT:-60}))

# Sets $status, and $again to the seconds to wait, from the server's Retry-After.
ask() {
  for server in ${TOKEN_SERVERS:-http://127.0.0.1:3000}; do
    answer=$(curl -s -m 2 -o /dev/null -D - -w '%{http_code}' -H 'Content-Type: application/json' \
      -d "{\"policy\": \"$policy\", \"key\": \"$key\"}" "$server/permits") || continue
    status=$(printf '%s' "$answer" | tail -n 1)
    again=$(printf '%s' "$answer" | tr -d '\r' | sed -n 's/^[Rr]etry-[Aa]fter: //p')
    return 0
  done
  echo "no token server answers" >&2
  exit 69
}

while :; do
  ask
  case $status in
    200) exec "$@" ;;
    429) ;;
    *) echo "the token server answered $status" >&2; exit 64 ;;
  esac
  if [ -z "$again" ] || [ $(($(date +%s) + again)) -gt "$wait_until" ]; then
    echo "no permit in time" >&2
    exit 75
  fi
  sleep "$again"
done
