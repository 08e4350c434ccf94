import type { Decision, Policy } from '@weir/core'
import { Balance } from './balance.ts'
import { InFlight } from './in-flight.ts'
import { KeyCounts } from './key-counts.ts'
import { Series } from './series.ts'

/** Counts of one policy. */
export class PolicyTally {
  readonly policy: Policy
  readonly keys: KeyCounts = new KeyCounts()
  readonly balance: Balance | InFlight
  /** Requests to which the policy applied. */
  requests = 0
  /** Requests that it rejected, or with `dryRun` would have rejected. */
  rejected = 0
  /** Requests that an exact central count rejected. */
  exactRejected = 0
  readonly rejections: Series = new Series()

  constructor(policy: Policy, maxKeys: number) {
    this.policy = policy
    this.balance = policy.algorithm.slots === undefined ? new Balance(policy, maxKeys) : new InFlight(policy.limit, maxKeys)
  }
}

/** Counts of all requests of a log. */
export class Tally {
  /** Requests to which at least one policy applied. */
  requests = 0
  allowed = 0
  rejected = 0
  /** Requests that an exact central count rejected. */
  exactRejected = 0
  /** Requests allowed that the exact count rejected, and requests rejected that it allowed. */
  allowedBeyond = 0
  rejectedEarly = 0
  /** Requests to which no policy applies. */
  uncounted = 0
  readonly series: Series = new Series()
  readonly policies: readonly PolicyTally[]
  readonly #byPolicy: ReadonlyMap<string, PolicyTally>

  /** @param maxKeys maximum number of keys of a policy to compare at one time */
  constructor(policies: readonly Policy[], maxKeys: number) {
    this.policies = policies.map((policy) => new PolicyTally(policy, maxKeys))
    this.#byPolicy = new Map(this.policies.map((one) => [one.policy.name, one]))
  }

  /**
   * Adds the decisions of the cluster and of the exact count for one request.
   *
   * @param arrived time of the request in milliseconds since the epoch
   * @param now time of the decision
   */
  add(decision: Decision | undefined, exact: Decision | undefined, arrived: number, now: number): void {
    if (decision === undefined) {
      this.uncounted++
      return
    }
    const { allowed } = decision
    this.requests++
    if (allowed) this.allowed++
    else this.rejected++
    if (exact?.allowed === false) {
      this.exactRejected++
      if (allowed) this.allowedBeyond++
    } else if (!allowed) this.rejectedEarly++
    this.series.add(arrived, !allowed)
    this.#count(decision, arrived, now, false)
    if (exact !== undefined) this.#count(exact, arrived, now, true)
  }

  /** Frees the slots of a request that has ended, for the cluster or for the exact count. */
  release({ parts }: Decision, exact: boolean): void {
    for (const { policy, key, cost } of parts) {
      const balance = this.#byPolicy.get(policy?.name ?? '')?.balance
      if (balance instanceof InFlight && cost > 0) balance.release(key, cost, exact ? 'exact' : 'cluster')
    }
  }

  /** Ends the counts, after the last decision. */
  close(): void {
    for (const { balance } of this.policies) balance.close()
  }

  #count(decision: Decision, arrived: number, now: number, exact: boolean): void {
    const { parts } = decision
    for (let i = 0; i < parts.length; i++) {
      const { policy, key, allowed, dryRun, cost } = parts[i] as Decision
      const tally = this.#byPolicy.get(policy?.name ?? '')
      if (tally === undefined) continue
      const rejected = !allowed || dryRun
      const count = tally.keys.of(key)
      if (exact) {
        if (rejected) {
          tally.exactRejected++
          count.exactRejected++
        }
      } else {
        tally.requests++
        count.requests++
        if (rejected) {
          tally.rejected++
          count.rejected++
          tally.rejections.add(arrived, true)
        }
      }
      if (cost > 0) tally.balance.add(key, now, cost, exact ? 'exact' : 'cluster')
    }
  }
}
