import type { Decide, Question, Verdict } from '@weir/core/sync'

/** The names of the keys and arguments of a question in a piece of a script, as Lua text. */
export interface Place {
  /** @param index in the list of `suffixes` */
  key(index?: number): string
  /** @param index in the list of `args` */
  arg(index: number): string
}

/**
 * One algorithm for a server, in pieces of Lua. They use the numbers `units` and `limit`, and variables of the pieces before them:
 *
 *     look     sets variables for the state, `ok` if the units fit, and `reply`
 *     keep     counts, after `look` has set `ok`
 *     add      counts whether or not it fits
 *     back     refunds
 *
 * They are pieces and no functions, because a server needs longer to make functions than to run them. A key is a hash. It contains the
 * algorithm's fields, and for each lane of a process the last request that changed it (`ARGV[1]` and `ARGV[2]`; see `added`). Replies
 * contain the state. The process derives the values for the client from it, with the step that is the model of the script.
 */
export interface ServerAlgorithm {
  /** The number of arguments that `args` adds for takes. */
  readonly takes: number
  look(place: Place): string
  keep(place: Place): string
  add(place: Place): string
  back(place: Place): string
  /** Adds the Redis keys of a key's name. Default: the name itself. */
  keys?(question: Question, name: string, list: string[]): void
  /** Adds the values that the pieces need besides units and limit. */
  args(question: Question, request: Decide, list: string[]): void
  /** @throws if a reply is invalid */
  read(reply: unknown, question: Question, time: number): Verdict
}

/** The most fields of lanes in a key. Above it, the script deletes fields of lanes that have not changed the key in the last call. */
const MOST_LANES = 256

/**
 * The first copy of a request may arrive after its repetition. Checking for that would cost each request a fifth of its time. So the
 * repetition removes its lane's field, and stores its number in another field. A request that adds the lane's field again checks there.
 */

function askedField(): string {
  return `ARGV[1] .. '!'`
}

/** The number of the lane's last repeated request. */
export function asked(key: string): string {
  return `tonumber(redis.call('HGET', ${key}, ${askedField()}) or 0)`
}

/** Notes a request that has just counted, if it is a repetition. */
export function markAsked(key: string): string {
  return `if ARGV[3] == 'a' and redis.call('HDEL', ${key}, ARGV[1]) > 0 then redis.call('HSET', ${key}, ${askedField()}, ARGV[2]) end`
}

/**
 * Runs if a lane's field was added to a hash. Keeps the hash from growing without end.
 *
 * @param undo reverts the request that has just counted, if its repetition was counted before
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

/** Sets `now` to the server's clock in milliseconds, or to the time of an argument if processes use that. */
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

/** A number in a reply, as a text if it is not whole. */
export function num(name: string): string {
  return `(${name} % 1 == 0 and ${name} or string.format('%.17g', ${name}))`
}

/**
 * Packs two whole numbers into one if they are not too large, because a list costs the server a good part of a microsecond. The second is
 * below 2^32, and the sum stays exact.
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
 * The verdict of a step for a key in this state.
 *
 * @param allowed whether the request was allowed, and is already in the state
 */
export function verdictBy(
  { policy: { step, parameters }, units, limit }: Question,
  allowed: boolean,
  state: number[],
  now: number,
): Verdict {
  const verdict = step.take(state, now, allowed ? 0 : units, limit, parameters)
  if (allowed) return verdict.allowed ? verdict : { ...verdict, allowed, retryAfterMs: 0 }
  // The server's rounding decided that it does not fit.
  return verdict.allowed ? { ...verdict, allowed, remaining: verdict.remaining + units, retryAfterMs: 1 } : verdict
}
