import type { StorePolicy } from '@weir/core/sync'
import { escapeText, nameOf, unescapeText } from '../keys/keys.ts'

/** The most policies whose names are remembered, which bounds the memory. */
const MOST_KNOWN = 10_000

/** The names of policies in the database, and the ids for names. */
export class PolicyNames {
  readonly #names = new WeakMap<StorePolicy, string>()
  readonly #ids = new Map<string, string>()

  of(policy: StorePolicy): string {
    let name = this.#names.get(policy)
    if (name === undefined) {
      name = nameOf(escapeText(policy.id))
      this.#names.set(policy, name)
      if (this.#ids.size < MOST_KNOWN) this.#ids.set(name, policy.id)
    }
    return name
  }

  idOf(name: string): string {
    return this.#ids.get(name) ?? unescapeText(name)
  }
}

/** The policies of one call, in the order of their names. */
export class PolicyList {
  readonly #places: ReadonlyMap<string, number>
  readonly #names: PolicyNames
  readonly #policies: readonly StorePolicy[]

  constructor(policies: Iterable<StorePolicy>, names: PolicyNames) {
    this.#names = names
    const byName = new Map<string, StorePolicy>()
    for (const policy of policies) {
      const name = names.of(policy)
      if (!byName.has(name)) byName.set(name, policy)
    }
    const sorted = [...byName].sort(([a], [b]) => (a < b ? -1 : 1))
    this.#places = new Map(sorted.map(([name], place) => [name, place + 1]))
    this.#policies = sorted.map(([, policy]) => policy)
  }

  /** Counts from 1, like the database. */
  placeOf(policy: StorePolicy): number {
    return this.#places.get(this.#names.of(policy)) as number
  }

  /** Returns id, width, cells, limit, hot, ttl, drain and debt, each as an array. */
  columns(): unknown[][] {
    const all = this.#policies
    return [
      all.map((policy) => this.#names.of(policy)),
      all.map(({ width }) => width),
      all.map(({ cells }) => cells),
      all.map(({ limit }) => limit),
      all.map(({ hot }) => hot),
      all.map(({ ttl }) => ttl),
      all.map(({ drain }) => drain ?? null),
      all.map(({ maxDebt }) => maxDebt ?? null),
    ]
  }
}
