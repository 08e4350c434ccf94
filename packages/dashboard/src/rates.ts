import type { ClusterNode } from '@weir/core/inspect'

export interface Rate {
  readonly admitted: number
  readonly refused: number
}

interface Seen {
  /** When the sums were those, milliseconds. */
  readonly at: number
  readonly sums: ReadonlyMap<string, Rate>
  readonly rates: ReadonlyMap<string, Rate>
}

/** Nodes tell at most once a second; sums that are closer together than this are one and the same report. */
const SAME_REPORT = 250
const NONE: ReadonlyMap<string, Rate> = new Map()

/** Rates out of sums that only grow: per second, by node and policy. */
export class Rates {
  readonly #seen = new Map<string, Seen>()

  /** Takes the nodes' newest sums in; `now` in milliseconds. Nodes that have gone are forgotten. */
  update(nodes: readonly ClusterNode[], now: number): void {
    const live = new Set<string>()
    for (const { node, age, policies } of nodes) {
      live.add(node)
      const at = now - age
      const before = this.#seen.get(node)
      if (before !== undefined && at - before.at < SAME_REPORT) continue
      const sums = new Map(policies.map(({ name, admitted, refused }) => [name, { admitted, refused }]))
      this.#seen.set(node, { at, sums, rates: before === undefined ? NONE : rates(before, sums, (at - before.at) / 1_000) })
    }
    for (const node of this.#seen.keys()) if (!live.has(node)) this.#seen.delete(node)
  }

  /** Of one node, all policies together. */
  ofNode(node: string): Rate {
    return sum(this.#seen.get(node)?.rates.values() ?? [])
  }

  /** Of one policy, all nodes together. */
  ofPolicy(policy: string): Rate {
    return sum([...this.#seen.values()].flatMap(({ rates }) => rates.get(policy) ?? []))
  }
}

function rates({ sums: before }: Seen, sums: ReadonlyMap<string, Rate>, seconds: number): Map<string, Rate> {
  const found = new Map<string, Rate>()
  for (const [policy, { admitted, refused }] of sums) {
    const then = before.get(policy)
    if (then === undefined) continue
    found.set(policy, {
      admitted: Math.max(0, admitted - then.admitted) / seconds,
      refused: Math.max(0, refused - then.refused) / seconds,
    })
  }
  return found
}

function sum(list: Iterable<Rate>): Rate {
  let admitted = 0
  let refused = 0
  for (const rate of list) {
    admitted += rate.admitted
    refused += rate.refused
  }
  return { admitted, refused }
}
