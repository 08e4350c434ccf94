import type { Question } from '@weir/core/sync'
import { numberOf, type ServerAlgorithm, verdictBy } from './server-algorithm.ts'

/** By when a node says that a window ends it is over; its key waits for clocks that differ, in milliseconds. */
const LINGER = 10_000

function ordinalOf({ policy: { parameters }, at }: Question): number {
  return Math.floor(at / (parameters[0] as number))
}

/** Windows of the epoch: a key for each, which holds `u`, the units taken. */
export const FIXED_WINDOW: ServerAlgorithm = {
  take: `
local function look(k, a)
  local v = redis.call('HGET', KEYS[k], 'u')
  local used, limit = tonumber(v or 0), tonumber(ARGV[a + 1])
  local after = used + ARGV[a]
  if after <= limit and limit > 0 then return true, num(after), after, v end
  return false, num(-1 - used)
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
  suffixes: (question) => [`:${ordinalOf(question)}`],
  args(question) {
    const { parameters } = question.policy
    return [String(Math.ceil((ordinalOf(question) + 1) * (parameters[0] as number) - question.at) + LINGER)]
  },
  read(reply, question) {
    const told = numberOf(reply)
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, ordinalOf(question)], question.at)
  },
}
