import { added, listOf, marked, noted, num, numberOf, type Place, type ServerAlgorithm, unmarked, verdictBy } from './server-algorithm.ts'

/**
 * The same tolerances as in the step, because sums of fractions are rounded (part of a limit up to 1e6), and so are the beginnings of
 * sub-windows (milliseconds).
 */
const ROUNDING = 1e-10
const EARLY = 0.001

function bucketAt(time: number, width: number): number {
  return Math.floor((time + EARLY) / width)
}

/**
 * Sets the running sub-window, its units and the oldest one's, the sum, and the newest sub-window with units. `gone` is set if the running
 * one is new.
 */
function state(place: Place): string {
  const { key, arg } = place
  const read = `found = redis.call('HMGET', ${key()}, 'o', 'u', 'n', 'b' .. here, 'b' .. (here - buckets))`
  return `local here, buckets = tonumber(${arg(0)}), tonumber(${arg(2)})
local ${read}
${unmarked(place, 'found[2]', read)}
local last = tonumber(found[1] or 0)
local ordinal, sum, newest, running, leaving, gone = here, 0, false, 0, 0, false
if last == here then
  sum, newest, running, leaving = tonumber(found[2]), tonumber(found[3]), tonumber(found[4] or 0), tonumber(found[5] or 0)
else
  if last > here and last - here <= buckets then ordinal = last end
  local left = {}
  local all = redis.call('HGETALL', ${key()})
  for i = 1, #all, 2 do
    if string.byte(all[i]) == 98 then
      local at, held = tonumber(string.sub(all[i], 2)), tonumber(all[i + 1])
      if at < ordinal - buckets or at > ordinal then left[#left + 1] = all[i]
      else
        sum = sum + held
        if held > 0 and (not newest or at > newest) then newest = at end
        if at == ordinal then running = held end
        if at == ordinal - buckets then leaving = held end
      end
    end
  end
  newest = newest or ordinal
  gone = ordinal ~= last and left
end`
}

function write(place: Place, bucket: string, after: string, undo = ''): string {
  const { key, arg } = place
  return `if gone and #gone > 0 then redis.call('HDEL', ${key()}, unpack(gone)) end
local added = redis.call('HSET', ${key()}, 'o', ordinal, 'u', ${marked('sum')}, 'n', newest, 'b' .. ${bucket}, ${after}${noted(place)})
if gone then redis.call('PEXPIRE', ${key()}, ${arg(3)}) end
if added > 0 then ${added(key(), undo)} end`
}

/** Counts the units in the running sub-window. */
function count(place: Place, undo?: string): string {
  return `newest, sum, running = ordinal, sum + units, running + units
${write(place, 'ordinal', 'running', undo)}`
}

/**
 * A hash of sub-windows. `b` and an ordinal name the units of each, `o` is the running one's ordinal, `u` the sum, and `n` the newest that
 * is not empty. While the running sub-window stays the same, a request reads these and the oldest sub-window. A request in a new one
 * removes the expired sub-windows.
 */
export const SLIDING_WINDOW: ServerAlgorithm = {
  takes: 5,
  time: 4,
  field: 'u',
  empty: "'0'",
  stamp: 'here',
  look: (place) => `${state(place)}
local over = ordinal == here and tonumber(${place.arg(1)}) or 0
local after = sum + units
if after - math.min(0.02 * limit, leaving * over) <= limit + math.min(limit, 1e6) * ${ROUNDING} and limit > 0 then
  ok, reply = true, { 1, ${num('after')}, units > 0 and ordinal or newest, ${num('leaving')}, ordinal }
else
  local all = redis.call('HGETALL', ${place.key()})
  if open ~= '' then
    local counts = {}
    for i = 1, #all, 2 do
      if string.byte(all[i]) == 98 then counts[#counts + 1], counts[#counts + 2] = all[i], all[i + 1] end
    end
    all = counts
  end
  reply = { 0, all, ordinal }
end`,
  keep: (place) => count(place, `redis.call('HSET', ${place.key()}, 'u', ${marked('sum - units')}, 'b' .. ordinal, running - units)`),
  add: (place) => `${state(place)}
${count(place)}`,
  back: (place, at) => `${state(place)}
local bucket = math.min(tonumber(${at}), ordinal)
local held = bucket >= ordinal - buckets and tonumber(redis.call('HGET', ${place.key()}, 'b' .. bucket) or 0) or 0
local less = math.min(held, units)
if less > 0 then
  sum, held = sum - less, held - less
  ${write(place, 'bucket', 'held')}
  -- Sums by differences would leave a little behind, and the newest bucket may be empty now.
  redis.call('HSET', ${place.key()}, 'o', 0)
end`,
  args({ policy: { parameters }, at, kind }, { time }, list) {
    const [interval = 0, buckets = 1] = parameters
    const width = interval / buckets
    // A refund contains the time at which its units were taken. It changes the current counts.
    const now = kind === 'take' || kind === 'add' ? at : time
    const ordinal = bucketAt(now, width)
    const over = Math.min(1, Math.max(0, now / width - ordinal))
    list.push(String(ordinal), String(over), String(buckets), String(Math.ceil(2 * interval + 2 * width)), String(time))
    if (kind === 'give-back') list.push(String(bucketAt(at, width)))
  },
  read(reply, question) {
    const [interval = 0, buckets = 1] = question.policy.parameters
    const width = interval / buckets
    const parts = listOf(reply)
    const cells: number[] = new Array(buckets + 2).fill(0)
    if (numberOf(parts[0]) === 1) {
      const [, sum, newest, leaving, ordinal] = parts.map(numberOf) as [number, number, number, number, number]
      cells[0] = ordinal
      // The exact position of the others does not matter. The sum counts, the oldest sub-window, and the newest that is not empty.
      cells[buckets + 1] = leaving
      cells[1 + Math.min(buckets - 1, Math.max(0, ordinal - newest))] = Math.max(0, sum - leaving)
      return verdictBy(question, true, cells, question.at)
    }
    const fields = listOf(parts[1])
    const ordinal = numberOf(parts[2])
    cells[0] = ordinal
    for (let i = 0; i + 1 < fields.length; i += 2) {
      const name = String(fields[i])
      const place = 1 + ordinal - Number(name.slice(1))
      if (name.startsWith('b') && place >= 1 && place <= buckets + 1) cells[place] = numberOf(fields[i + 1])
    }
    return verdictBy(question, false, cells, Math.max(question.at, ordinal * width))
  },
}
