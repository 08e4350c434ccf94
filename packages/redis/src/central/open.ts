import { MOST_OPEN } from '@weir/core/sync'
import { asked, clock, type Place, type ServerAlgorithm } from './algorithms/server-algorithm.ts'

/*
 * Open reservations are fields of their key's hash. `#` contains four numbers: the first and the last end, how many there are, and the
 * number of the newest. `#` and an id contains five: the end, the time at which the units were counted, the units, the units that count at
 * the end, and the reservation's number. In it, `open` and `latest` are as `unmarked` sets them.
 *
 * The arguments of a question are the id, the end, the units, the units at the end, and the time of units that count already.
 */

/** Arguments that `reservationArgs` adds. */
export const RESERVATION_ARGS = 5

/** Milliseconds that a key lives after the last end, because clocks differ. */
const LINGER = 10_000

/** Counts `used` units instead of the `reserved` ones, which were counted at the time `taken`. */
function recount({ add, back, taken = 'taken' }: ServerAlgorithm, from: Place, to: Place): string {
  return `if used > reserved then
  local units = used - reserved
  ${add(to)}
elseif used < reserved then
  local units = reserved - used
  ${back(from, taken)}
end`
}

/** The place without `due`, and with another first key. With `time`, the place of the time among the arguments, the time is an end. */
function settling({ key, arg }: Place, index: number, time?: number): Place {
  return { key: (more = 0) => key(index + more), arg: (i) => (i === time ? 'one[1]' : arg(i)) }
}

/**
 * Settles the reservations of a key whose end has passed, as of their end.
 *
 * @param index the place's key
 * @param debts the key to which units are added
 */
export function due(algorithm: ServerAlgorithm, place: Place, index: number, debts: number): string {
  const key = place.key(index)
  return `local head = redis.call('HGET', ${key}, '#')
if head then
  ${clock(place.arg(algorithm.time))}
  local first, last, count, newest = struct.unpack('<dddd', head)
  open, latest = '#', last
  if now >= first then
    local ended, all = {}, redis.call('HGETALL', ${key})
    first, latest = math.huge, 0
    for i = 1, #all, 2 do
      if string.byte(all[i]) == 35 and #all[i] > 1 then
        local one = { struct.unpack('<ddddd', all[i + 1]) }
        if now < one[1] then first, latest = math.min(first, one[1]), math.max(latest, one[1])
        else
          one.field = all[i]
          ended[#ended + 1] = one
        end
      end
    end
    if first < math.huge then redis.call('HSET', ${key}, '#', struct.pack('<dddd', first, latest, count - #ended, newest))
    else
      open = ''
      redis.call('HDEL', ${key}, '#')
    end
    table.sort(ended, function(a, b) return a[1] < b[1] or a[1] == b[1] and #a.field == #b.field and a.field < b.field or a[1] == b[1] and #a.field < #b.field end)
    for _, one in ipairs(ended) do
      local taken, reserved, used, field = one[2], one[3], one[4], one.field
      redis.call('HDEL', ${key}, field)
      ${recount(algorithm, settling(place, index, algorithm.time), settling(place, debts, algorithm.time))}
    end
  end
end`
}

/**
 * Opens a reservation of units that have just been counted.
 *
 * @param first the place of its arguments in ARGV
 */
export function opening({ stamp = 'nil', time, field, empty }: ServerAlgorithm, place: Place, first: number): string {
  const key = place.key()
  return `local taken, field = ${stamp}, '#' .. ARGV[${first}]
local ends, state = tonumber(ARGV[${first + 1}]), redis.call('HGET', ${key}, '${field}')${empty === undefined ? '' : ` or ${empty}`}
${clock(place.arg(time))}
-- If the request was repeated and has counted already, the reservation may have been settled.
if state and now < ends and ${asked(key)} < tonumber(ARGV[2]) then
  local soonest, last, count, newest = ends, ends, 0, 0
  local head = redis.call('HGET', ${key}, '#')
  if head then
    soonest, last, count, newest = struct.unpack('<dddd', head)
    soonest, last = math.min(soonest, ends), math.max(last, ends)
  end
  if count < ${MOST_OPEN} and not redis.call('HGET', ${key}, field) then
    if string.byte(state, -1) ~= 35 then redis.call('HSET', ${key}, '${field}', state .. '#') end
    local one = struct.pack('<ddddd', ends, taken or now, tonumber(ARGV[${first + 2}]), tonumber(ARGV[${first + 3}]), newest + 1)
    redis.call('HSET', ${key}, '#', struct.pack('<dddd', soonest, last, count + 1, newest + 1), field, one, ARGV[1], ARGV[2])
    ${empty === undefined ? '' : `if redis.call('PTTL', ${key}) < ends - now then redis.call('PEXPIRE', ${key}, math.ceil(ends - now) + ${LINGER}) end`}
  end
end`
}

/** Ends the script unless the question's reservation is open. Sets `found` to its numbers. */
function found(place: Place): string {
  return `local open, latest = '', 0
${place.due?.(0)}
local field = '#' .. ARGV[#ARGV - ${RESERVATION_ARGS - 1}]
local found = redis.call('HGET', ${place.key()}, field)
if not found then return 0 end
local ends, taken, reserved, _, number = struct.unpack('<ddddd', found)`
}

/** Closes the question's reservation, or ends the script if it is not open. */
function closed(place: Place): string {
  const key = place.key()
  return `${found(place)}
local soonest, last, count, newest = struct.unpack('<dddd', redis.call('HGET', ${key}, '#'))
if count > 1 then redis.call('HSET', ${key}, '#', struct.pack('<dddd', soonest, last, count - 1, newest))
else redis.call('HDEL', ${key}, '#') end
redis.call('HDEL', ${key}, field)`
}

/** A question of one of these kinds about a reservation, whose arguments are the last ones. */
export function reservationChange(kind: 'give-back' | 'use' | 'settle', algorithm: ServerAlgorithm, place: Place, debts: number): string {
  const key = place.key()
  if (kind === 'use') {
    return `${found(place)}
redis.call('HSET', ${key}, field, struct.pack('<ddddd', ends, taken, reserved, units, number), ARGV[1], ARGV[2])`
  }
  if (kind === 'give-back') {
    return `${closed(place)}
${algorithm.back(place, place.arg(algorithm.takes))}`
  }
  return `${closed(place)}
local used = units
${clock(place.arg(algorithm.time))}
${recount(algorithm, settling(place, 0), settling(place, debts))}
redis.call('HSET', ${key}, ARGV[1], ARGV[2])`
}
