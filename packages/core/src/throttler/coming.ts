import { isByName } from '../decide/costs.ts'
import type { Decision } from '../decide/decision.ts'
import { ALL_KEY, type Policy, type PolicyOptions } from '../decide/policy.ts'
import type { RequestPath } from '../decide/request-path.ts'
import type { AcquireOptions } from '../queue/options.ts'
import type { Clock } from '../time/clock.ts'

/** Milliseconds after which requests are checked again, because units may be free by then. */
const AGAIN = 50

/** The members of the throttler that are needed here. */
interface ComingHost {
  readonly closed: boolean
  readonly clock: Pick<Clock, 'monotonic'>
  readonly requests: { readonly allowed: number }
  readonly rules: readonly PolicyOptions<never>[]
  readonly policies: readonly Policy[]
  readonly path: Pick<RequestPath<string>, 'waits' | 'look'>
}

/** A request of `acquire`. */
interface Comer {
  readonly key: string
  readonly options: AcquireOptions | undefined
}

/** The result for the requests so far: code may read `waiting` after each of many calls. */
interface Looked {
  readonly at: number
  readonly allowed: number
  /** Units that they need, by policy and key. */
  readonly taken: Map<string, number>
  waiting: number
}

/** Requests that can't be decided yet, because the code that lets them wait is being loaded. */
export class Coming {
  readonly #all = new Set<Comer>()
  /** Requests that came since the last check. */
  #unseen: Comer[] = []
  #looked: Looked | undefined

  /** @returns removes the request */
  add(comer: Comer): () => void {
    this.#all.add(comer)
    this.#unseen.push(comer)
    return () => {
      this.#all.delete(comer)
      this.#looked = undefined
      this.#unseen = []
    }
  }

  get none(): boolean {
    return this.#all.size === 0
  }

  /** How many of them will wait, by the counts of this process: all of them if the store has to decide. */
  waiting({ closed, clock, requests, rules, policies, path }: ComingHost): number {
    if (this.none || closed || path.waits) return this.#all.size
    const now = clock.monotonic()
    const { allowed } = requests
    const before = this.#looked
    const isNew = before === undefined || before.allowed !== allowed || now - before.at >= AGAIN
    const looked = isNew ? { at: now, allowed, taken: new Map<string, number>(), waiting: 0 } : before
    const { taken } = looked
    for (const { key, options } of isNew ? this.#all : this.#unseen) {
      const { cost, limit } = options ?? {}
      const named = isByName(cost) ? cost : undefined
      const places = policies.flatMap(({ name }, place) => (named === undefined || named[name] !== undefined ? [place] : []))
      const keys = rules.map((rule) => (rule.key === ALL_KEY ? ALL_KEY : key))
      const counted = keys.map((own, place) => `${place} ${own}`)
      const costs = rules.map((rule, place) => {
        const own =
          named?.[policies[place]?.name ?? ''] ?? (typeof cost === 'number' ? cost : typeof rule.cost === 'number' ? rule.cost : 1)
        return own + (taken.get(counted[place] as string) ?? 0)
      })
      const limits = limit === undefined ? undefined : rules.map(() => limit)
      const { allowed, parts } = path.look(keys, costs, places, places.length, limits)
      const goes = allowed && parts.every((part) => delayOf(part, costs[policies.findIndex(({ id }) => id === part.policy?.id)] ?? 0) === 0)
      if (goes) for (const place of places) taken.set(counted[place] as string, costs[place] as number)
      else looked.waiting++
    }
    this.#unseen = []
    this.#looked = looked
    return looked.waiting
  }
}

/** Milliseconds for which a request of this many units is delayed, by the remaining units of a decision. */
function delayOf({ policy, remaining, limit }: Decision, cost: number): number {
  if (policy === undefined || policy.dryRun) return 0
  return policy.algorithm.delay?.(remaining - cost, limit, policy.interval) ?? 0
}
