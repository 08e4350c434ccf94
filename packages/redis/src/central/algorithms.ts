import type { Question, Verdict } from '@weir/core/sync'

/**
 * One algorithm as a server keeps it, in Lua functions. They name a key by its place in `KEYS`, and where the arguments of its
 * question begin in `ARGV`: at `a` units, at `a + 1` the limit, then what `args` gives.
 *
 *     look(k, a)        → whether it fits, a reply, and values for `keep`
 *     keep(k, a, …)     counts, after `look` said that it fits
 *     add(k, a)         counts whether or not it fits
 *     back(k, a)        gives back
 *
 * A key is a hash: the algorithm's fields, and for each node the last of its requests that changed it (`mark`).
 */
export interface ServerAlgorithm {
  /** `look` and `keep`; and the others, which may use these. */
  readonly take: string
  readonly add: string
  readonly back: string
  /** What follows a key's name, for algorithms that keep one key for each cell. */
  suffix?(question: Question): string
  /** @param time that the nodes go by */
  args(question: Question, time: number): readonly string[]
  /** @throws when a reply is none */
  read(reply: unknown, question: Question, time: number): Verdict
}

/** Windows of the epoch, a key for each. By when a node says that they end, they are over; then the key waits for clocks that differ. */
const LINGER = 10_000

function windowOf({ policy: { parameters }, at }: Question): { readonly ordinal: number; readonly end: number } {
  const [interval = 0] = parameters
  const ordinal = Math.floor(at / interval)
  return { ordinal, end: (ordinal + 1) * interval }
}

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
  suffix: (question) => `:${windowOf(question).ordinal}`,
  args: (question) => [String(Math.ceil(windowOf(question).end - question.at) + LINGER)],
  read(reply, question, time) {
    const told = numberOf(reply)
    const left = Math.max(0, windowOf(question).end - time)
    return verdictOf(told >= 0, told >= 0 ? told : -1 - told, left, question)
  },
}

export const FIRST_REQUEST: ServerAlgorithm = {
  take: `
local function look(k, a)
  local v = redis.call('HGET', KEYS[k], 'u')
  local used, limit = tonumber(v or 0), tonumber(ARGV[a + 1])
  local after = used + ARGV[a]
  local left = used > 0 and redis.call('PTTL', KEYS[k]) or 0
  if after <= limit and limit > 0 then return true, { num(after), left }, after, used > 0 end
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
  back: `
local function back(k, a)
  local used = tonumber(redis.call('HGET', KEYS[k], 'u') or 0)
  if used > 0 and redis.call('PTTL', KEYS[k]) + ARGV[a + 3] <= tonumber(ARGV[a + 2]) then
    keep(k, a, math.max(0, used - ARGV[a]), true)
  end
end`,
  args({ policy: { parameters }, kind, at }, time) {
    // Units that were taken longer ago than the window has run were of the one before.
    return kind === 'give-back' ? [String(parameters[0]), String(Math.max(0, time - at))] : [String(parameters[0])]
  },
  read(reply, question) {
    const [units, ttl] = Array.isArray(reply) ? (reply as readonly unknown[]) : []
    const told = numberOf(units)
    const left = numberOf(ttl)
    const [interval = 0] = question.policy.parameters
    const used = told >= 0 ? told : -1 - told
    const until = left > 0 ? left : interval
    return { ...verdictOf(told >= 0, used, until, question), resetAfter: used > 0 ? until : 0 }
  },
}

/** Of windows, whose units come back all at once. */
function verdictOf(allowed: boolean, used: number, left: number, { units, limit }: Question): Verdict {
  const never = units > limit || limit === 0
  return {
    allowed,
    remaining: Math.max(0, limit - used),
    resetAfter: left,
    retryAfter: allowed ? 0 : never ? Number.POSITIVE_INFINITY : Math.max(Number.MIN_VALUE, left),
    delay: 0,
  }
}

export function numberOf(value: unknown): number {
  const number = typeof value === 'string' || Buffer.isBuffer(value) ? Number(value.toString()) : value
  if (typeof number !== 'number' || Number.isNaN(number)) throw new Error('not a number')
  return number
}
