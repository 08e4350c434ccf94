/*
 * Readers check values from outside of this process: replies of a store, messages of a child, reports of other processes.
 *
 *     const readBlock = object({ key: text(1_024), remaining: number(0, MOST), manual: mark })
 *     readBlock({ key: 'a', remaining: 5, other: 1 })   // { key: 'a', remaining: 5 }
 *     readBlock({ key: 'a', remaining: -5 })            // undefined
 *
 * A reader returns a copy of the parts in its schema, or undefined if the value is unusable. It reads each property once, because a getter
 * may return another value next time. It never throws: a property that throws counts as a wrong value.
 *
 * `object` takes about half a microsecond. Code that runs for each key of a sync reads its few properties itself.
 */

export type Reader<T> = (value: unknown) => T | undefined

/** A reader returns it for a property that is left out of the copy. */
export const ABSENT: unique symbol = Symbol('absent')

/** The most units, and milliseconds. */
export const MOST: number = Number.MAX_SAFE_INTEGER

type Schema = Readonly<Record<string, Reader<unknown>>>
type Result<R> = R extends (value: unknown) => infer T ? Exclude<T, undefined> : never
type Optional<S extends Schema> = { [N in keyof S]: typeof ABSENT extends Result<S[N]> ? N : never }[keyof S]
/** The value that a schema describes. */
export type Read<S extends Schema> = { readonly [N in Exclude<keyof S, Optional<S>>]: Result<S[N]> } & {
  readonly [N in Optional<S>]?: Exclude<Result<S[N]>, typeof ABSENT>
}

export function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === 'object' && value !== null
}

export function isNumber(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most
}

export function number(least: number, most: number): Reader<number> {
  return (value) => (isNumber(value, least, most) ? value : undefined)
}

export function whole<T extends number>(least: number, most: number): Reader<T> {
  return (value) => (Number.isSafeInteger(value) && isNumber(value, least, most) ? (value as T) : undefined)
}

/** @param longest - UTF-16 code units */
export function text(longest: number): Reader<string> {
  return (value) => (typeof value === 'string' && value.length <= longest ? value : undefined)
}

export function oneOf<const T>(...values: readonly T[]): Reader<T> {
  return (value) => (values.includes(value as T) ? (value as T) : undefined)
}

/** Any value other than `true` is false. */
export function flag(value: unknown): boolean {
  return value === true
}

/** Any value other than `true` is left out. */
export function mark(value: unknown): true | typeof ABSENT {
  return value === true || ABSENT
}

/** A value as it is, for code that reads it afterwards. */
export function raw(value: unknown): unknown {
  return value === undefined ? ABSENT : value
}

/** A missing value is left out. */
export function optional<T>(read: Reader<T>): Reader<T | typeof ABSENT> {
  return (value) => (value === undefined ? ABSENT : read(value))
}

/** @param instead - stands for null, because JSON has no infinite numbers and no undefined */
export function orNull<T, I extends number | typeof ABSENT>(read: Reader<T>, instead: I): Reader<T | I> {
  return (value) => (value === null ? instead : read(value))
}

/** An unusable value is left out. */
export function ifUsable<T>(read: Reader<T>): Reader<T | typeof ABSENT> {
  return (value) => read(value) ?? ABSENT
}

export function object<S extends Schema>(schema: S): Reader<Read<S>> {
  return reader(schema, isObject, Object.keys(schema))
}

/** A list of at most `most` items, by position: an object with the schema's names in the schema's order. */
export function row<S extends Schema>(schema: S, most: number = Object.keys(schema).length): Reader<Read<S>> {
  return reader(schema, (value) => Array.isArray(value) && value.length <= most, Object.keys(Object.keys(schema)))
}

/** @param places - the properties to read, in the order of the schema */
function reader<S extends Schema>(schema: S, fits: (value: unknown) => boolean, places: readonly string[]): Reader<Read<S>> {
  const parts = Object.entries(schema)
  return (value) =>
    attempt(() => {
      if (!fits(value)) return undefined
      const copy: Record<string, unknown> = {}
      for (let i = 0; i < parts.length; i++) {
        const [name, read] = parts[i] as [string, Reader<unknown>]
        const part = read((value as Record<string, unknown>)[places[i] as string])
        if (part === undefined) return undefined
        if (part !== ABSENT) copy[name] = part
      }
      return copy as Read<S>
    })
}

/** A list, each item usable. */
export function list<T>(most: number, read: Reader<T>): Reader<T[]> {
  return (value) => {
    let good = true
    const items = each(most, read, () => {
      good = false
    })(value)
    return good ? (items as T[] | undefined) : undefined
  }
}

/** A list, its unusable items undefined. `bad` is called for each of these. */
export function each<T>(most: number, read: Reader<T>, bad: () => void): Reader<(T | undefined)[]> {
  return (value) =>
    attempt(() => {
      if (!Array.isArray(value)) return undefined
      const { length } = value
      return length <= most ? eachOf(value, length, read, bad) : undefined
    })
}

/** The usable items among the first `most` of a list. `bad` is called once if there are others. */
export function items<T>(most: number, read: Reader<T>, bad: () => void): Reader<T[]> {
  return (value) =>
    attempt(() => {
      if (!Array.isArray(value)) return undefined
      const { length } = value
      let wrong = length > most
      const all = eachOf(value, Math.min(length, most), read, () => {
        wrong = true
      })
      if (wrong) bad()
      return all.filter((item) => item !== undefined)
    })
}

/** The first `length` items of a list, the unusable ones undefined. `bad` is called for each of these. */
export function eachOf<T>(
  given: readonly unknown[],
  length: number,
  read: (item: unknown, at: number) => T | typeof ABSENT | undefined,
  bad: (at: number) => void,
): (T | undefined)[] {
  const all: (T | undefined)[] = []
  for (let i = 0; i < length; i++) {
    const item = attempt(() => read(given[i], i))
    if (item === undefined) bad(i)
    all.push(item === ABSENT ? undefined : item)
  }
  return all
}

/** The result of `read`, or undefined if it throws. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
