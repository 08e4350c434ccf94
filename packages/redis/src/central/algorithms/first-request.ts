import { pairOf, type ServerAlgorithm, verdictBy } from './server-algorithm.ts'

/** Windows that begin with a key's first request: `u` holds the units taken, and the key lives as long as its window. */
export const FIRST_REQUEST: ServerAlgorithm = {
  take: `
local function look(k, a)
  local used, limit = tonumber(redis.call('HGET', KEYS[k], 'u') or 0), tonumber(ARGV[a + 1])
  local after = used + ARGV[a]
  local left = used > 0 and redis.call('PTTL', KEYS[k]) or 0
  if after <= limit and limit > 0 then return true, pair(after, left), after, used > 0 end
  return false, { num(-1 - used), left }
end
local function keep(k, a, after, running)
  mark(k, redis.call('HSET', KEYS[k], 'u', after, ARGV[1], ARGV[2]))
  if not running then redis.call('PEXPIRE', KEYS[k], ARGV[a + 2]) end
end`,
  add: `
local function add(k, a)
  local used = tonumber(redis.call('HGET', KEYS[k], 'u') or 0)
  keep(k, a, used + ARGV[a], used > 0)
end`,
  // Units that were taken longer ago than the window has run were of the one before.
  back: `
local function back(k, a)
  local used = tonumber(redis.call('HGET', KEYS[k], 'u') or 0)
  if used > 0 and redis.call('PTTL', KEYS[k]) + ARGV[a + 3] <= tonumber(ARGV[a + 2]) then
    keep(k, a, math.max(0, used - ARGV[a]), true)
  end
end`,
  args({ policy: { parameters }, kind, at }, { time }) {
    const interval = String(Math.ceil(parameters[0] as number))
    return kind === 'give-back' ? [interval, String(Math.max(0, time - at))] : [interval]
  },
  read(reply, question, time) {
    const [told, left] = pairOf(reply)
    const [interval = 0] = question.policy.parameters
    // A key that was not used before has no time left yet.
    const began = left > 0 ? Math.min(time, time - interval + left) : time
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, began], time)
  },
}
