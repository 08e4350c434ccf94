import type { Decide, DecidedPolicy, Decider, Verdict } from '@weir/core/sync'
import { escapeText, nameOf } from '../keys/keys.ts'
import { asArray, asObject, asTime, LONGEST_TIME, replyError } from '../reply/check.ts'
import { isOfData } from '../reply/of-data.ts'
import { KnownStates, stateOf } from './known-states.ts'
import { type Change, outcomeOf } from './step.ts'

/** The most requests in one call. */
const MOST_TOGETHER = 100
/** The most requests that wait for the calls before them. */
const MOST_WAITING = 10_000
/** How often other processes may be faster before a request is rejected. */
const MOST_TRIES = 32

/** The parts of a connection that a decider uses. */
export interface Asked {
  readonly node: string
  readonly connection: { hold(): void; release(): void }
  /** The store's time now, undefined before the first reply. */
  storeTime(): number | undefined
  heard(time: number, since: number): void
  monotonic(): number
  call(values: unknown[]): Promise<string>
}

interface Pending {
  readonly request: Decide
  readonly names: readonly string[]
  tries: number
  resolve(verdicts: readonly Verdict[] | undefined): void
  reject(error: unknown): void
}

/** A key of one call, with its state after the requests before. */
interface Working {
  readonly policy: string
  readonly key: string
  readonly version: number
  state: readonly number[]
  sequences: readonly number[]
  change: Change | undefined
}

/**
 * Decides requests by the algorithm's own step, on the state of a key that this process last received. The database replaces the key's
 * numbers if they haven't changed since. This takes one round trip if the key is new or this process used it last, and two if another
 * process did. Requests that arrive during a call share the next one.
 */
export class PostgresDecider implements Decider {
  readonly #asked: Asked
  readonly #known = new KnownStates()
  readonly #policies = new WeakMap<DecidedPolicy, string>()
  #queue: Pending[] = []
  #busy = false

  constructor(asked: Asked) {
    this.#asked = asked
  }

  partOf(): number {
    return 0
  }

  decide(request: Decide): Promise<readonly Verdict[] | undefined> {
    if (this.#queue.length >= MOST_WAITING) return Promise.reject(new Error(`${MOST_WAITING} requests wait for PostgreSQL already.`))
    return new Promise((resolve, reject) => {
      const names = request.questions.map(({ policy, key }) => `${this.#nameOf(policy)}\n${nameOf(escapeText(key))}`)
      this.#queue.push({ request, names, tries: 0, resolve, reject })
      if (!this.#busy) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#busy = true
    this.#asked.connection.hold()
    // Requests of the same turn are sent together.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const batch = this.#next()
      try {
        await this.#ask(batch)
      } catch (error) {
        // Invalid data of one key fails only the requests of that key.
        if (batch.length > 1 && isOfData(error)) await Promise.all(batch.map((one) => this.#ask([one]).catch(one.reject)))
        else for (const { reject } of batch) reject(error)
      }
    }
    this.#busy = false
    this.#asked.connection.release()
  }

  /**
   * Returns the first request alone if it has several keys, because their changes belong together. Otherwise returns all requests of one
   * key up to the next one with several.
   */
  #next(): Pending[] {
    const [first] = this.#queue as [Pending]
    if (first.names.length > 1) return this.#queue.splice(0, 1)
    let count = 1
    while (count < MOST_TOGETHER && this.#queue[count]?.names.length === 1) count++
    return this.#queue.splice(0, count)
  }

  async #ask(batch: readonly Pending[]): Promise<void> {
    const { node, monotonic } = this.#asked
    const together = (batch[0] as Pending).names.length > 1
    const working = this.#workingOf(batch)
    const verdicts = batch.map(({ request, names }) => this.#try(request, names, working))
    const keys = [...working.values()]
    const since = monotonic()
    const reply = await this.#asked.call([
      node,
      keys.map(({ policy }) => policy),
      keys.map(({ key }) => key),
      keys.map(({ version }) => version),
      JSON.stringify(keys.map(({ change }) => (change === undefined ? null : writeOf(change)))),
      together,
    ])
    const { t, keys: told } = asObject(JSON.parse(reply))
    this.#asked.heard(asTime(t), since)
    const states = asArray(told)
    if (states.length !== keys.length) throw replyError('too few states')
    const same = new Map<string, boolean | undefined>()
    ;[...working.keys()].forEach((name, i) => {
      try {
        const one = stateOf(states[i])
        same.set(name, one.same)
        this.#known.learn(name, one.known)
      } catch {
        // The key's value is invalid. Only its requests are decided without it.
        same.set(name, undefined)
      }
    })
    const late: Pending[] = []
    batch.forEach((pending, i) => {
      const found = pending.names.map((name) => same.get(name))
      if (found.includes(undefined)) pending.resolve(undefined)
      else if (!found.includes(false)) pending.resolve(verdicts[i])
      else if (++pending.tries < MOST_TRIES) late.push(pending)
      else pending.reject(new Error('Other processes changed the row first in every attempt.'))
    })
    this.#queue.unshift(...late)
  }

  /** Returns the known states of the keys. They are sorted, because all processes must lock them in the same order. */
  #workingOf(batch: readonly Pending[]): Map<string, Working> {
    const names = [...new Set(batch.flatMap((pending) => pending.names))].sort(byPolicyAndKey)
    return new Map(
      names.map((name) => {
        const [policy, key] = name.split('\n') as [string, string]
        return [name, { policy, key, ...this.#known.of(name), change: undefined }]
      }),
    )
  }

  #try(request: Decide, names: readonly string[], working: ReadonlyMap<string, Working>): readonly Verdict[] {
    const rows = names.map((name) => working.get(name) as Working)
    const { verdicts, changes } = outcomeOf(request, rows, this.#asked.storeTime() ?? request.time)
    changes.forEach((change, i) => {
      if (change === undefined) return
      const row = rows[i] as Working
      row.state = change.state
      row.sequences = change.sequences ?? []
      row.change = change
    })
    return verdicts
  }

  #nameOf(policy: DecidedPolicy): string {
    let name = this.#policies.get(policy)
    if (name === undefined) this.#policies.set(policy, (name = nameOf(escapeText(policy.id))))
    return name
  }
}

function byPolicyAndKey(a: string, b: string): number {
  const [policyA, keyA] = a.split('\n') as [string, string]
  const [policyB, keyB] = b.split('\n') as [string, string]
  if (policyA !== policyB) return policyA < policyB ? -1 : 1
  return keyA < keyB ? -1 : keyA > keyB ? 1 : 0
}

/** Returns the change as an array of the database, which unlike JSON has infinity, its lifetime, and the numbers of the last requests. */
function writeOf({ state, lifetime, sequences }: Change): unknown[] {
  const said = [`{${state.join()}}`, Math.min(LONGEST_TIME, Math.max(0, lifetime))]
  return sequences === undefined ? said : [...said, sequences]
}
