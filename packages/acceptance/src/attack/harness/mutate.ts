import type { Random } from './random.ts'

/** Values to send where another type is expected. Each survives JSON, or becomes null there. */
export const HOSTILE: readonly unknown[] = [
  null,
  true,
  7,
  -1,
  0.5,
  1e308,
  2 ** 53 + 2,
  '',
  'x',
  '__proto__',
  'x\n\u001b[31mINJECTED',
  'y'.repeat(100_000),
  [],
  [[]],
  {},
  { length: 1e9 },
  { length: -1 },
  { toString: 1, valueOf: 1 },
  Array.from({ length: 3000 }, () => 1),
]
/** The same values, and values that JSON can't express. */
export const HOSTILE_VALUES: readonly unknown[] = [
  ...HOSTILE,
  undefined,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  -0,
  10n,
  Symbol('x'),
  () => 1,
  Object.freeze([Number.NaN, Number.NaN]),
  new Proxy(
    {},
    {
      get: () => {
        throw new Error('a trap')
      },
    },
  ),
]

type Path = readonly (string | number)[]

/** The paths to all parts of a value. The path to the whole value comes first. */
export function pathsOf(value: unknown, deepest = 7): Path[] {
  if (typeof value !== 'object' || value === null || deepest === 0) return [[]]
  const keys: (string | number)[] = Array.isArray(value) ? [...value.keys()].slice(0, 20) : Object.keys(value)
  const inner = keys.flatMap((key) =>
    pathsOf((value as Record<string | number, unknown>)[key], deepest - 1).map((path): Path => [key, ...path]),
  )
  return [[], ...inner]
}

/** A copy in which one part is replaced. */
export function replaced(value: unknown, path: Path, by: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return by
  if (Array.isArray(value)) return value.map((part, i) => (i === key ? replaced(part, rest, by) : part))
  return { ...(value as object), [key]: replaced((value as Record<string | number, unknown>)[key], rest, by) }
}

/** A copy in which one to three parts are replaced, shortened, doubled or changed. */
export function mutated(random: Random, value: unknown, hostile: readonly unknown[] = HOSTILE_VALUES): unknown {
  let copy = value
  for (let changes = 1 + random.below(3); changes > 0; changes--) {
    const paths = pathsOf(copy)
    const path = random.pick(paths.length > 1 && random.chance(0.95) ? paths.slice(1) : paths)
    const part = path.reduce<unknown>((at, key) => (at as Record<string | number, unknown>)?.[key], copy)
    let by = random.pick(hostile)
    if (Array.isArray(part) && random.chance(0.5)) by = random.chance(0.5) ? [...part, ...part] : part.slice(1)
    else if (typeof part === 'number' && random.chance(0.6)) by = random.pick([part + 1, -part, part * 1e9, part / 3, 0])
    else if (typeof part === 'string' && random.chance(0.4)) by = random.pick([`${part}x`, part.slice(1), part.toUpperCase()])
    copy = replaced(copy, path, by)
  }
  return copy
}

/** A copy of bytes in which some are changed, removed, doubled or inserted. */
export function mutatedBytes(random: Random, bytes: Buffer): Buffer {
  let copy = Buffer.from(bytes)
  for (let changes = 1 + random.below(4); changes > 0; changes--) {
    const at = random.below(copy.length + 1)
    const end = Math.min(copy.length, at + 1 + random.below(8))
    switch (random.below(5)) {
      case 0:
        if (at < copy.length) copy[at] = random.below(256)
        break
      case 1:
        copy = Buffer.concat([copy.subarray(0, at), copy.subarray(end)])
        break
      case 2:
        copy = Buffer.concat([copy.subarray(0, end), copy.subarray(at)])
        break
      case 3:
        copy = Buffer.concat([copy.subarray(0, at), random.bytes(1 + random.below(6)), copy.subarray(at)])
        break
      default:
        copy = Buffer.concat([
          copy.subarray(0, at),
          Buffer.from(random.pick(['-1', '1e999', '99999999999999999999', 'NaN', '%', '{}', '[', '"', '\0', ':'])),
          copy.subarray(at),
        ])
    }
  }
  return copy
}

/**
 * A changed reply of a store, with its original time if the changed one is also a valid time. Weir trusts the store's time, and so the
 * interval that follows from it, so a false time is no attack.
 */
export function withTime(lie: unknown, reply: { readonly time: number }): unknown {
  const time = (lie as { readonly time?: unknown } | null | undefined)?.time
  return typeof time === 'number' && time > 0 && time <= 8.64e15 ? { ...(lie as object), time: reply.time } : lie
}
