import { added, num, type Place, pair, pairOf, type ServerAlgorithm, verdictBy } from './server-algorithm.ts'

function used({ key }: Place): string {
  return `local used = tonumber(redis.call('HGET', ${key()}, 'u') or 0)`
}

/** Writes `after`. A new window begins if nothing was `used` before. */
function write({ key, arg }: Place, undo = ''): string {
  return `local added = redis.call('HSET', ${key()}, 'u', after, ARGV[1], ARGV[2])
if used == 0 then redis.call('PEXPIRE', ${key()}, ${arg(0)})
elseif added > 0 then ${added(key(), undo)} end`
}

/** Windows that begin with a key's first request. `u` contains the units taken, and the key lives as long as its window. */
export const FIRST_REQUEST: ServerAlgorithm = {
  takes: 1,
  look: (place) => `${used(place)}
local after = used + units
local left = used > 0 and redis.call('PTTL', ${place.key()}) or 0
if after <= limit and limit > 0 then ok, reply = true, ${pair('after', 'left')}
else
  local told = -1 - used
  reply = { ${num('told')}, left }
end`,
  keep: (place) => write(place, `redis.call('HSET', ${place.key()}, 'u', used)`),
  add: (place) => `${used(place)}
local after = used + units
${write(place)}`,
  // Units from before the window's beginning belong to the previous window.
  back: (place) => `${used(place)}
if used > 0 and redis.call('PTTL', ${place.key()}) + ${place.arg(1)} <= tonumber(${place.arg(0)}) then
  local after = math.max(0, used - units)
  ${write(place)}
end`,
  args({ policy: { parameters }, kind, at }, { time }, list) {
    list.push(String(Math.ceil(parameters[0] as number)))
    if (kind === 'give-back') list.push(String(Math.max(0, time - at)))
  },
  read(reply, question, time) {
    const [told, left] = pairOf(reply)
    const [interval = 0] = question.policy.parameters
    // A new key has no remaining time yet.
    const began = left > 0 ? Math.min(time, time - interval + left) : time
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, began], time)
  },
}
