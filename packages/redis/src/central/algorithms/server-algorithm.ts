import type { Decide, Question, Verdict } from '@weir/core/sync'

/** The names of the keys and arguments of a question in a piece of a script, as Lua text. */
export interface Place {
  /** @param index in the list of `keys` */
  key(index?: number): string
  /** @param index in the list of `args` */
  arg(index: number): string
  /** Settles the reservations of a key whose end has passed. Absent in the pieces by which they are settled. */
  due?(index: number): string
}

/**
 * One algorithm for a server, in pieces of Lua. They use the numbers `units` and `limit`, and variables of the pieces before them:
 *
 *     look     sets variables for the state, `ok` if the units fit, and `reply`
 *     keep     counts, after `look` has set `ok`
 *     add      counts whether or not it fits
 *     back     refunds units that were taken at the time `at`, which is Lua text
 *
 * They are pieces and no functions, because a server needs longer to make functions than to run them. A key is a hash. It contains the
 * algorithm's fields, and for each lane of a process the last request that changed it (`ARGV[1]` and `ARGV[2]`; see `added`). Replies
 * contain the state. The process derives the values for the client from it, with the step that is the model of the script.
 */
export interface ServerAlgorithm {
  /** The number of arguments that `args` adds for takes. */
  readonly takes: number
  /** The argument with the time. It is '' for the server's clock. */
  readonly time: number
  /** The field that every request reads and every change writes. */
  readonly field: 's' | 'u'
  /**
   * Its value in a new key, as Lua text. Absent: a key lives exactly as long as its window, so reservations end with the key and don't
   * lengthen its life.
   */
  readonly empty?: string
  /** The time for `back` that an open reservation contains, as Lua text after `look` or `add`. Default: the time in milliseconds. */
  readonly stamp?: string
  /** The time for `back` if a reservation contains `taken`. Default: `taken`. */
  readonly taken?: string
  /** The key to which a reservation of an earlier interval adds units when it is settled by its process. Default: the reservation's. */
  readonly debts?: number
  look(place: Place): string
  keep(place: Place): string
  add(place: Place): string
  back(place: Place, at: string): string
  /** Adds the Redis keys of a key's name. Default: the name itself. */
  keys?(question: Question, name: string, list: string[], time: number): void
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
  local lanes = {}
  for _, field in ipairs(redis.call('HKEYS', ${key})) do
    if string.byte(field) == 64 and field ~= ARGV[1] then lanes[#lanes + 1] = field end
  end
  if #lanes >= ${MOST_LANES} then
    for _, field in ipairs(lanes) do redis.call('HDEL', ${key}, field) end
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

/** The arguments of HSET that note the request of a lane. There are none when a reservation is settled. */
export function noted({ due }: Place): string {
  return due === undefined ? '' : ', ARGV[1], ARGV[2]'
}

/**
 * The state of a key with open reservations ends with `#`, so that other keys need no further command to find out that they have none. This
 * removes the mark from a value that was read. It sets `open` to the mark, which is written again, and `latest` to the last end of an open
 * reservation.
 *
 * @param value the variable with the value
 * @param again reads it again, after reservations were settled
 */
export function unmarked({ due }: Place, value: string, again: string, index = 0): string {
  const marked = `if ${value} and string.byte(${value}, -1) == 35 then`
  if (due === undefined) {
    return `local open = ''
${marked} ${value}, open = string.sub(${value}, 1, -2), '#' end`
  }
  return `local open, latest = '', 0
${marked}
  ${due(index)}
  ${again}
  ${value} = string.sub(${value}, 1, -2)
end`
}

/** A number as the value of a field, with the mark. */
export function marked(name: string): string {
  return `(open == '' and ${name} or ${num(`(${name})`)} .. open)`
}

/** Adds the arguments of a question's reservation. */
export function reservationArgs({ reservation, at }: Question, list: string[]): void {
  if (reservation === undefined) return
  const { id, end, units, due } = reservation
  list.push(String(id), String(end), String(units), String(due), String(at))
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
