import type { Question } from '@weir/core/sync'
import { pairOf, type ServerAlgorithm, verdictBy } from './server-algorithm.ts'

function ordinalOf({ policy: { parameters }, at }: Question): number {
  return Math.floor(at / (parameters[0] as number))
}

/**
 * The weighted counter of two windows of the epoch: a key for each, which holds `u`, the units taken. `look` reads two of them, a refund
 * changes the one that its units were taken in.
 */
export const SLIDING_COUNTER: ServerAlgorithm = {
  take: `
local function look(k, a)
  local v = redis.call('HGET', KEYS[k], 'u')
  local previous, limit = tonumber(redis.call('HGET', KEYS[k + 1], 'u') or 0), tonumber(ARGV[a + 1])
  local after = (v or 0) + ARGV[a]
  if previous * ARGV[a + 3] + after <= limit and limit > 0 then return true, pair(after, previous), after, v end
  return false, { num(-1 - (v or 0)), num(previous) }
end
local function keep(k, a, after, v)
  mark(k, redis.call('HSET', KEYS[k], 'u', after, ARGV[1], ARGV[2]))
  if not v then redis.call('PEXPIRE', KEYS[k], ARGV[a + 2]) end
end`,
  add: `
local function add(k, a)
  local v = redis.call('HGET', KEYS[k], 'u')
  keep(k, a, (v or 0) + ARGV[a], v)
end`,
  back: `
local function back(k, a)
  local v = redis.call('HGET', KEYS[k], 'u')
  if v then keep(k, a, math.max(0, v - ARGV[a]), v) end
end`,
  suffixes: (question) => [`:${ordinalOf(question)}`, `:${ordinalOf(question) - 1}`],
  args(question) {
    const interval = question.policy.parameters[0] as number
    const ahead = (ordinalOf(question) + 1) * interval - question.at
    return [String(Math.ceil(3 * interval)), String(Math.min(1, Math.max(0, ahead / interval)))]
  },
  read(reply, question) {
    const [told, previous] = pairOf(reply)
    return verdictBy(question, told >= 0, [previous, told >= 0 ? told : -1 - told, ordinalOf(question)], question.at)
  },
}
