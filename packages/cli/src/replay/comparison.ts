import type { Decision } from '@weir/core'
import type { LogRecord } from '../log/record.ts'
import { shownKey } from './reader.ts'
import { Series } from './series.ts'

/** A key with requests that the two sets of rules decide differently. */
export interface ChangedKey {
  /** The policy that rejects the key. */
  readonly policy: string
  readonly key: string
  requests: number
}

/** The most keys that are counted separately. */
const MOST_KEYS = 50_000

/** Requests that one set of rules rejects and the other allows. */
export class OneSided {
  requests = 0
  readonly series: Series = new Series()
  readonly #keys = new Map<string, ChangedKey>()

  add({ time }: LogRecord, { policy, key }: Decision): void {
    this.requests++
    this.series.add(time, true)
    const name = policy?.name ?? ''
    const id = JSON.stringify([name, key])
    const known = this.#keys.get(id)
    if (known !== undefined) known.requests++
    else if (this.#keys.size < MOST_KEYS) this.#keys.set(id, { policy: name, key: Buffer.from(key).toString(), requests: 1 })
  }

  get keys(): number {
    return this.#keys.size
  }

  top(most: number): readonly ChangedKey[] {
    const sorted = [...this.#keys.values()].sort((one, other) => other.requests - one.requests)
    return sorted.slice(0, most).map((one) => ({ ...one, key: shownKey(one.key) }))
  }
}

/** Compares the decisions of new rules and other rules, request by request. */
export class Comparison {
  /** Rejected only by the new rules. */
  readonly rejected: OneSided = new OneSided()
  /** Rejected only by the other rules. */
  readonly allowed: OneSided = new OneSided()
  /** Requests with one of the two decisions. */
  readonly #waiting = new Map<LogRecord, { readonly mine: boolean; readonly decision: Decision | undefined }>()

  /** @param mine whether the decision is from the new rules */
  add(record: LogRecord, decision: Decision | undefined, mine: boolean): void {
    const other = this.#waiting.get(record)
    if (other === undefined || other.mine === mine) {
      this.#waiting.set(record, { mine, decision })
      return
    }
    this.#waiting.delete(record)
    const [now, before] = mine ? [decision, other.decision] : [other.decision, decision]
    const [rejectedNow, rejectedBefore] = [now?.allowed === false, before?.allowed === false]
    if (rejectedNow === rejectedBefore) return
    if (rejectedNow) this.rejected.add(record, now as Decision)
    else this.allowed.add(record, before as Decision)
  }
}
