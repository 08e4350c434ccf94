import {
  added,
  marked,
  noted,
  num,
  type Place,
  pair,
  pairOf,
  type ServerAlgorithm,
  timeIn,
  unmarked,
  verdictBy,
} from './server-algorithm.ts'

function used(place: Place): string {
  const read = `found = redis.call('HGET', ${place.key()}, 'u')`
  return `local ${read}
${unmarked(place, 'found', read)}
local used = tonumber(found or 0)`
}

/** Writes `after`. A new window begins if nothing was `used` before. */
function write(place: Place, undo = ''): string {
  const key = place.key()
  return `local added = redis.call('HSET', ${key}, 'u', ${marked('after')}${noted(place)})
if used == 0 then redis.call('PEXPIRE', ${key}, ${place.arg(0)})
elseif added > 0 then ${added(key, undo)} end`
}

/** Windows that begin with a key's first request. `u` contains the units taken, and the key lives as long as its window. */
export const FIRST_REQUEST: ServerAlgorithm = {
  takes: 2,
  time: 1,
  field: 'u',
  // A key's life has whole milliseconds, and its clock is a little behind while a script runs.
  taken: 'math.max(0, now - taken - 2)',
  look: (place) => `${used(place)}
local after = used + units
local left = used > 0 and redis.call('PTTL', ${place.key()}) or 0
if after <= limit and limit > 0 then ok, reply = true, ${pair('after', 'left')}
else
  local told = -1 - used
  reply = { ${num('told')}, left }
end`,
  keep: (place) => write(place, `redis.call('HSET', ${place.key()}, 'u', ${marked('used')})`),
  add: (place) => `${used(place)}
local after = used + units
${write(place)}`,
  // Units from before the window's beginning belong to the previous window.
  back: (place, elapsed) => `${used(place)}
if used > 0 and redis.call('PTTL', ${place.key()}) + ${elapsed} <= tonumber(${place.arg(0)}) then
  local after = math.max(0, used - units)
  ${write(place)}
end`,
  args({ policy: { parameters }, kind, at }, request, list) {
    list.push(String(Math.ceil(parameters[0] as number)), timeIn(request))
    if (kind === 'give-back') list.push(String(Math.max(0, request.time - at)))
  },
  read(reply, question, time) {
    const [told, left] = pairOf(reply)
    const [interval = 0] = question.policy.parameters
    // A new key has no remaining time yet.
    const began = left > 0 ? Math.min(time, time - interval + left) : time
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, began], time)
  },
}
