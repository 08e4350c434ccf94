import { isDeepStrictEqual } from 'node:util'

/** One difference between two documents of rules. */
export interface Difference {
  readonly kind: 'added' | 'removed' | 'changed'
  /** A path such as `policies.customer.limit` or `overrides.customer.acme`. */
  readonly path: string
  /** The value in each document, if there is one. */
  readonly before?: unknown
  readonly after?: unknown
}

type Fields = Readonly<Record<string, unknown>>

/**
 * Differences of two valid documents, as they were written. Policies and overrides are matched by name. `version` and `change` are ignored.
 */
export function differencesOf(before: unknown, after: unknown): readonly Difference[] {
  const differences: Difference[] = []
  compareRules(before, after, '', differences)
  compareRules(fieldsOf(before)['next'], fieldsOf(after)['next'], 'next.', differences)
  return differences
}

function compareRules(before: unknown, after: unknown, at: string, differences: Difference[]): void {
  const [policiesBefore, policiesAfter] = [before, after].map((one) => byName(fieldsOf(one)['policies'], nameOf))
  for (const [name, one, other] of pairsOf(policiesBefore as Named, policiesAfter as Named)) {
    const path = `${at}policies.${name}`
    if (one === undefined || other === undefined) differences.push(differenceOf(path, one, other))
    else
      for (const [option, was, is] of pairsOf(new Map(Object.entries(one)), new Map(Object.entries(other)))) {
        if (!isDeepStrictEqual(was, is)) differences.push(differenceOf(`${path}.${option}`, was, is))
      }
  }
  const order = [...(policiesBefore as Named).keys()].filter((name) => policiesAfter?.has(name))
  const orderNow = [...(policiesAfter as Named).keys()].filter((name) => policiesBefore?.has(name))
  if (!isDeepStrictEqual(order, orderNow))
    differences.push({ kind: 'changed', path: `${at}policies (order)`, before: order, after: orderNow })
  const [overridesBefore, overridesAfter] = [before, after].map((one) => byName(fieldsOf(one)['overrides'], overrideOf))
  for (const [name, one, other] of pairsOf(overridesBefore as Named, overridesAfter as Named)) {
    if (!isDeepStrictEqual(one, other)) differences.push(differenceOf(`${at}overrides.${name}`, one, other))
  }
}

type Named = ReadonlyMap<string, Fields>

function byName(list: unknown, name: (one: Fields) => string): Named {
  return new Map((Array.isArray(list) ? list : []).map((one) => [name(fieldsOf(one)), fieldsOf(one)]))
}

function nameOf({ name }: Fields): string {
  return typeof name === 'string' ? name : 'default'
}

function overrideOf({ policy, key }: Fields): string {
  return `${String(policy)}.${String(key)}`
}

/** The values of both maps under each name, in the order of the first map, then of the second. */
function pairsOf<T>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): readonly (readonly [string, T | undefined, T | undefined])[] {
  return [...new Set([...before.keys(), ...after.keys()])].map((name) => [name, before.get(name), after.get(name)])
}

function differenceOf(path: string, before: unknown, after: unknown): Difference {
  if (before === undefined) return { kind: 'added', path, after }
  if (after === undefined) return { kind: 'removed', path, before }
  return { kind: 'changed', path, before, after }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}
