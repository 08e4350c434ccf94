import type { Decide, Question, Verdict } from '@weir/core/sync'

/** How a piece of a script names the keys and arguments of its question, as text of Lua. */
export interface Place {
  /** @param index of what `suffixes` gives */
  key(index?: number): string
  /** @param index of what `args` adds */
  arg(index: number): string
}

/**
 * One algorithm as a server keeps it, in pieces of Lua. They use the numbers `units` and `limit`, and what pieces before them have named:
 *
 *     look     names what it finds; sets `ok` if the units fit, and `reply`
 *     keep     counts, after `look` has set `ok`
 *     add      counts whether or not it fits
 *     back     gives back
 *
 * They are pieces and no functions, since to make functions takes a server longer than to run them. A key is a hash: the algorithm's fields,
 * and for each lane of a node the last of its requests that changed it (`ARGV[1]` and `ARGV[2]`; see `added`). Replies tell the state; what follows
 * from it for the client, the node computes by the step that is the model of the script.
 */
export interface ServerAlgorithm {
  /** How many arguments `args` adds for takes. */
  readonly takes: number
  look(place: Place): string
  keep(place: Place): string
  add(place: Place): string
  back(place: Place): string
  /** Adds the keys in Redis that a key takes, by its name. Default: the name. */
  keys?(question: Question, name: string, list: string[]): void
  /** Adds what the pieces need to know beside units and limit. */
  args(question: Question, request: Decide, list: string[]): void
  /** @throws when a reply is none */
  read(reply: unknown, question: Question, time: number): Verdict
}

/** Fields of lanes that a key has at most: then those go that have not changed it in the last call. */
const MOST_LANES = 256

/*
 * The first copy of a request may arrive after it was asked again. To look for that would cost each request a fifth of its time. So one that was
 * asked again takes its lane's field away, and leaves its number in one beside it: whoever adds the lane's field anew looks there.
 */

function askedField(): string {
  return `ARGV[1] .. '!'`
}

/** The number of the last request of the lane that was asked again. */
export function asked(key: string): string {
  return `tonumber(redis.call('HGET', ${key}, ${askedField()}) or 0)`
}

/** For a request that has just counted; if it is asked again. */
export function markAsked(key: string): string {
  return `if ARGV[3] == 'a' and redis.call('HDEL', ${key}, ARGV[1]) > 0 then redis.call('HSET', ${key}, ${askedField()}, ARGV[2]) end`
}

/**
 * For where the field of a lane was added to a hash: keeps it from growing without end.
 *
 * @param undo takes back what a request has just counted, if it was asked again and counted before
 */
export function added(key: string, undo: string): string {
  if (undo === '') return room(key)
  return `if ${asked(key)} >= tonumber(ARGV[2]) then
${undo}
else ${room(key)} end`
}

function room(key: string): string {
  return `if redis.call('HLEN', ${key}) > ${MOST_LANES} then
  for _, field in ipairs(redis.call('HKEYS', ${key})) do
    if string.byte(field) == 64 and field ~= ARGV[1] then redis.call('HDEL', ${key}, field) end
  end
end`
}

/** Names `now`, the server's clock in milliseconds, or the time that an argument gives where nodes go by that. */
export function clock(argument: string): string {
  return `local now = tonumber(${argument})
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000 + t[2] / 1000
end`
}

/** The argument that `clock` reads. */
export function timeIn({ time, stepped }: Decide): string {
  return stepped === true ? String(time) : ''
}

/** A number as a reply: a text where it is not whole. */
export function num(name: string): string {
  return `(${name} % 1 == 0 and ${name} or string.format('%.17g', ${name}))`
}

/**
 * Two numbers as one, where both are whole and not too large: a list takes the server a good part of a microsecond. The second is below
 * 2^32, the sum within what is exact.
 */
export function pair(x: string, y: string): string {
  const whole = `${x} % 1 == 0 and ${y} % 1 == 0 and ${x} < 1048576 and ${y} < 4294967296`
  return `${whole} and ${x} * 4294967296 + ${y} or { ${num(x)}, ${num(y)} }`
}

/** Reads the two numbers that `pair` packed. */
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
 * The verdict of a step on a key in this state.
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
  if (allowed) return verdict.allowed ? verdict : { ...verdict, allowed, retryAfterMs: 0 }
  // The server says that it does not fit, by a hair.
  return verdict.allowed ? { ...verdict, allowed, remaining: verdict.remaining + units, retryAfterMs: 1 } : verdict
}
