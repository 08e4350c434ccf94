import { type ClusterNode, mergeLimited, type Snapshot } from '@weir/core/inspect'
import type { LimitedView, Mode } from './protocol.ts'
import { mostOfEach } from './top-keys.ts'

/** Milliseconds of one step of a sparkline, and the number of steps. */
export const STEP = 5_000
const STEPS = 60
/** Keys whose steps are kept. */
const FOLLOWED = 500

interface Followed {
  total: number
  readonly steps: number[]
}

/** The keys with rejected requests of all processes, and their sparklines. */
export class LimitedKeys {
  /** In the order of the last rejection. */
  readonly #followed = new Map<string, Followed>()
  #stepAt = Number.NEGATIVE_INFINITY

  /** The keys of all processes, most rejections in the last minute first. */
  list({ limited }: Snapshot, nodes: readonly ClusterNode[], time: number, mode: (policy: string) => Mode): LimitedView[] {
    const merged = mergeLimited([{ limited, ageMs: 0 }, ...nodes.filter(({ self }) => !self)])
    return mostOfEach(merged).map((one) => ({
      policy: one.policy,
      key: one.key,
      mode: mode(one.policy),
      reason: one.reason,
      lastMinute: one.rejectedLastMinute,
      total: one.rejected,
      since: time - one.sinceFirstMs,
      last: time - one.sinceLastMs,
      processes: one.processes,
      spark: this.#followed.get(idOf(one))?.steps ?? [],
    }))
  }

  /** Adds a step to the sparklines every five seconds. */
  follow(keys: readonly LimitedView[], time: number): void {
    const steps = Math.floor((time - this.#stepAt) / STEP)
    if (steps < 1) return
    this.#stepAt = Number.isFinite(steps) ? this.#stepAt + steps * STEP : time
    const listed = new Map(keys.map((one) => [idOf(one), one]))
    for (const [id, one] of this.#followed) {
      const { total = one.total } = listed.get(id) ?? {}
      // After a pause the rejections are spread evenly, because their times are unknown.
      const each = Math.round((Math.max(0, total - one.total) / steps) * 100) / 100
      for (let i = 0; i < Math.min(steps, STEPS); i++) one.steps.push(each)
      one.steps.splice(0, one.steps.length - STEPS)
      one.total = total
      if (!listed.has(id) && one.steps.every((count) => count === 0)) this.#followed.delete(id)
    }
    for (const [id, { total }] of listed) if (!this.#followed.has(id)) this.#followed.set(id, { total, steps: [] })
    for (const id of this.#followed.keys()) {
      if (this.#followed.size <= FOLLOWED) break
      this.#followed.delete(id)
    }
  }

  /** Rejections of a key in steps of 5 s up to the returned time, oldest first. */
  steps(policy: string, key: string): { readonly end: number; readonly steps: readonly number[] } {
    return { end: this.#stepAt, steps: this.#followed.get(idOf({ policy, key }))?.steps ?? [] }
  }
}

function idOf({ policy, key }: { readonly policy: string; readonly key: string }): string {
  return JSON.stringify([policy, key])
}
