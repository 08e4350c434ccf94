import type { Decide, Question, Verdict } from '@weir/core/sync'

/**
 * One algorithm as a server keeps it, in Lua functions. They name a key by its place in `KEYS`, and where the arguments of its
 * question begin in `ARGV`: at `a` units, at `a + 1` the limit, then what `args` gives.
 *
 *     look(k, a)        → whether it fits, a reply, and three values for `keep`
 *     keep(k, a, …)     counts, after `look` said that it fits
 *     add(k, a)         counts whether or not it fits
 *     back(k, a)        gives back
 *
 * A key is a hash: the algorithm's fields, and for each node the last of its requests that changed it (`mark`). Replies tell the
 * state; what follows from it for the client, the node computes by the step that is the model of the script.
 */
export interface ServerAlgorithm {
  /** What `look` and `keep` use of it, e.g. the server's clock. */
  readonly common?: string
  /** `look` and `keep`; and the others, which may use these. */
  readonly take: string
  readonly add: string
  readonly back: string
  /** What follows a key's name, one for each key in Redis that it takes. Default: one key, by its name alone. */
  suffixes?(question: Question): readonly string[]
  args(question: Question, request: Decide): readonly string[]
  /** @throws when a reply is none */
  read(reply: unknown, question: Question, time: number): Verdict
}

/** The server's clock in milliseconds, or the time at a place of `ARGV` where nodes go by that. */
export const CLOCK = `
local function clock(a)
  if ARGV[a] ~= '' then return tonumber(ARGV[a]) end
  local t = redis.call('TIME')
  return t[1] * 1000 + t[2] / 1000
end`

/** What `CLOCK` reads. */
export function timeIn({ time, stepped }: Decide): string {
  return stepped === true ? String(time) : ''
}

/**
 * Two numbers as one, where both are whole and not too large: a list takes the server a good part of a microsecond. The second is below
 * `PAIR`, the sum within what is exact.
 */
export const PAIR = `
local function pair(x, y)
  if x % 1 == 0 and y % 1 == 0 and x < 1048576 and y < 4294967296 then return x * 4294967296 + y end
  return { num(x), num(y) }
end`

/** What `pair` has made. */
export function pairOf(value: unknown): readonly [number, number] {
  if (typeof value === 'number' && value >= 0) return [Math.floor(value / 2 ** 32), value % 2 ** 32]
  return listOf(value).map(numberOf) as [number, number]
}

export function numberOf(value: unknown): number {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  if (typeof number !== 'number' || Number.isNaN(number)) throw new Error('not a number')
  return number
}

export function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('not a list')
  return value
}

/**
 * What a step says of a key in this state.
 *
 * @param allowed whether the request was, and is in the state already
 */
export function verdictBy(
  { policy: { step, parameters }, units, limit }: Question,
  allowed: boolean,
  state: number[],
  now: number,
): Verdict {
  const verdict = step.take(state, now, allowed ? 0 : units, limit, parameters)
  if (allowed) return verdict.allowed ? verdict : { ...verdict, allowed, retryAfter: 0 }
  // The server says that it does not fit, by a hair.
  return verdict.allowed ? { ...verdict, allowed, remaining: verdict.remaining + units, retryAfter: 1 } : verdict
}
