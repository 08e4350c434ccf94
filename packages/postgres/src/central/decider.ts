import type { Decide, DecidedPolicy, Decider, Verdict } from '@weir/core/sync'
import { escapeText, nameOf } from '../keys/keys.ts'
import { asArray, asObject, asTime, LONGEST_TIME, replyError } from '../reply/check.ts'
import { isOfData } from '../reply/of-data.ts'
import { KnownStates, stateOf } from './known-states.ts'
import { type Change, outcomeOf } from './step.ts'

/** Requests that go together at most. */
const MOST_TOGETHER = 100
/** Requests that wait for those before them at most. */
const MOST_WAITING = 10_000
/** Times that others may be quicker before a request is given up. */
const MOST_TRIES = 32

/** A connection, as far as it is needed here. */
export interface Asked {
  readonly node: string
  readonly connection: { readonly ready: boolean; hold(): void; release(): void }
  /** The store's time now, as far as it is known. */
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

/** A key of one call, with what the requests before make of it. */
interface Working {
  readonly policy: string
  readonly key: string
  readonly version: number
  state: readonly number[]
  sequences: readonly number[]
  change: Change | undefined
}

/**
 * Decides about requests by the algorithm's own step, on what this node knows of a key; the database replaces the key's numbers if they
 * are still those. As a rule that is one round trip, also of a key that is new or that this node used last; two where another node did. Requests that come while one is on its way go together.
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
    if (!this.#asked.connection.ready) return Promise.reject(new Error('PostgreSQL is not connected.'))
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
        // Bad data of one key fails only the requests of that key.
        if (batch.length > 1 && isOfData(error)) await Promise.all(batch.map((one) => this.#ask([one]).catch(one.reject)))
        else for (const { reject } of batch) reject(error)
      }
    }
    this.#busy = false
    this.#asked.connection.release()
  }

  /** The next request of several keys, whose changes belong together; or all of one key until then. */
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
      else pending.reject(new Error('Other nodes were always quicker.'))
    })
    this.#queue.unshift(...late)
  }

  /** The known states of the keys, sorted, because all processes must lock them in the same order. */
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

/** An array of the database, which unlike JSON knows infinity; how long it says anything; and the numbers of the last requests. */
function writeOf({ state, lifetime, sequences }: Change): unknown[] {
  const said = [`{${state.join()}}`, Math.min(LONGEST_TIME, Math.max(0, lifetime))]
  return sequences === undefined ? said : [...said, sequences]
}
