import { listOf, numberOf, type ServerAlgorithm, verdictBy } from './server-algorithm.ts'

/**
 * A hash of sub-windows: `b` and an ordinal for the units of each bucket, `o` the running one's ordinal, `u` the sum, and `f` the first
 * bucket that is not empty. While the running bucket stays the same, a request reads these and the oldest bucket; with the next one the
 * buckets go that have left.
 */
export const SLIDING_WINDOW: ServerAlgorithm = {
  common: `
local function state(k, a)
  local here, buckets = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 4])
  local v = redis.call('HMGET', KEYS[k], 'o', 'u', 'f', 'b' .. here, 'b' .. (here - buckets))
  local last = tonumber(v[1] or 0)
  if last == here then return here, tonumber(v[2]), tonumber(v[3]), tonumber(v[4] or 0), tonumber(v[5] or 0), false end
  local ordinal = here
  if last > here and last - here <= buckets then ordinal = last end
  local sum, first, running, leaving, gone = 0, false, 0, 0, {}
  local all = redis.call('HGETALL', KEYS[k])
  for i = 1, #all, 2 do
    if string.byte(all[i]) == 98 then
      local at, units = tonumber(string.sub(all[i], 2)), tonumber(all[i + 1])
      if at < ordinal - buckets or at > ordinal then gone[#gone + 1] = all[i]
      else
        sum = sum + units
        if units > 0 and (not first or at < first) then first = at end
        if at == ordinal then running = units end
        if at == ordinal - buckets then leaving = units end
      end
    end
  end
  return ordinal, sum, first or ordinal, running, leaving, ordinal ~= last and gone or false
end
local function write(k, a, ordinal, sum, first, bucket, units, gone)
  if gone and #gone > 0 then redis.call('HDEL', KEYS[k], unpack(gone)) end
  local added = redis.call('HSET', KEYS[k], 'o', ordinal, 'u', sum, 'f', first, 'b' .. bucket, units, ARGV[1], ARGV[2])
  if gone then redis.call('PEXPIRE', KEYS[k], ARGV[a + 5]) end
  if added > 0 and redis.call('HLEN', KEYS[k]) > 256 then mark(k, 1) end
end`,
  take: `
local function look(k, a)
  local ordinal, sum, first, running, leaving, gone = state(k, a)
  local limit = tonumber(ARGV[a + 1])
  local over = ordinal == tonumber(ARGV[a + 2]) and tonumber(ARGV[a + 3]) or 0
  local used = sum - math.min(0.02 * limit, leaving * over)
  if used + ARGV[a] <= limit and limit > 0 then
    if sum == 0 then first = ordinal end
    return true, { 1, num(sum + ARGV[a]), first, num(leaving), ordinal }, { ordinal, sum + ARGV[a], first, running + ARGV[a] }, gone
  end
  return false, { 0, redis.call('HGETALL', KEYS[k]), ordinal }
end
local function keep(k, a, s, gone)
  write(k, a, s[1], s[2], s[3], s[1], s[4], gone)
end`,
  add: `
local function add(k, a)
  local ordinal, sum, first, running, leaving, gone = state(k, a)
  if sum == 0 then first = ordinal end
  write(k, a, ordinal, sum + ARGV[a], first, ordinal, running + ARGV[a], gone)
end`,
  back: `
local function back(k, a)
  local ordinal, sum, first, running, leaving, gone = state(k, a)
  local bucket = math.min(tonumber(ARGV[a + 6]), ordinal)
  if bucket < ordinal - ARGV[a + 4] then return end
  local units = tonumber(redis.call('HGET', KEYS[k], 'b' .. bucket) or 0)
  local less = math.min(units, tonumber(ARGV[a]))
  if less <= 0 then return end
  write(k, a, ordinal, sum - less, first, bucket, units - less, gone)
  -- Sums by differences would leave a little behind, and the first bucket may be empty now.
  redis.call('HSET', KEYS[k], 'o', 0)
end`,
  args({ policy: { parameters }, at, kind }, { time }) {
    const [interval = 0, buckets = 1] = parameters
    const width = interval / buckets
    // A refund names when its units were taken; it changes what is there now.
    const now = kind === 'give-back' ? time : at
    const ordinal = Math.floor(now / width)
    const over = Math.min(1, Math.max(0, now / width - ordinal))
    const more = kind === 'give-back' ? [String(Math.floor(at / width))] : []
    return [String(ordinal), String(over), String(buckets), String(Math.ceil(2 * interval + 2 * width)), ...more]
  },
  read(reply, question) {
    const [interval = 0, buckets = 1] = question.policy.parameters
    const width = interval / buckets
    const parts = listOf(reply)
    const cells: number[] = new Array(buckets + 2).fill(0)
    if (numberOf(parts[0]) === 1) {
      const [, sum, first, leaving, ordinal] = parts.map(numberOf) as [number, number, number, number, number]
      cells[0] = ordinal
      // Where exactly the others lie tells nothing here: the sum counts, the oldest bucket, and the first that is not empty.
      const oldest = ordinal - buckets
      cells[buckets + 1] = leaving
      const place = 1 + Math.min(buckets, Math.max(0, ordinal - Math.max(first, oldest + (leaving > 0 ? 0 : 1))))
      cells[place] = (cells[place] as number) + Math.max(0, sum - leaving)
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
