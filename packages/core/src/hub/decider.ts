import { changeBy, type Decide, type Decider, isDone, laneOf, lifetimeBy, type Question, takeBy, type Verdict } from '../store/contract.ts'
import type { Clock } from '../time/clock.ts'
import { type Account, keyBytes } from './account.ts'

/** The state of one key of a policy. */
interface Kept {
  readonly state: number[]
  /** The last request that changed the key, for each lane of a process. */
  readonly sequences: Map<string, number>
  /** The monotonic time until which it is worth more than a new key's state. */
  until: number
  /** The account that pays for the memory, and the bytes that it paid for. */
  readonly account: Account | undefined
  bytes: number
}

/** Bytes of a number of the state, and of a lane's last request. */
const NUMBER_BYTES = 8
const SEQUENCE_BYTES = 150

/** The most lanes of a key. Beyond it all lanes are forgotten except the lane of the newest change. */
const MOST_LANES = 256

/** The number of requests after which expired states are removed. */
const SWEEP_AFTER = 10_000
const DONE: Verdict = Object.freeze({ allowed: true, remaining: 0, resetAfterMs: 0, retryAfterMs: 0, delayMs: 0 })

/** Decides requests in this process, by each policy's step, on states in memory. */
export class HubDecisions {
  readonly #clock: Clock
  readonly #policies = new Map<string, Map<string, Kept>>()
  #asked = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Decides a process's request in one atomic step.
   *
   * @param account pays for the memory. Without one there is no bound
   * @throws if the account is used up
   */
  decide(node: string, request: Decide, account?: Account): readonly Verdict[] {
    return this.#decide(laneOf(node, request), request, account)
  }

  #decide(from: string, request: Decide, account: Account | undefined): readonly Verdict[] {
    if (++this.#asked % SWEEP_AFTER === 0) this.sweep()
    const { questions } = request
    const [question] = questions
    if (question !== undefined && question.kind !== 'take') return [this.#change(from, question, request, account)]
    const keys = questions.map((one) => this.#keyOf(one, account))
    if (
      isDone(
        request,
        keys.map(({ sequences }) => sequences.get(from) ?? 0),
      )
    ) {
      return questions.map((one, i) => ({ ...this.#take([...(keys[i] as Kept).state], { ...one, units: 0 }, request), allowed: true }))
    }
    const states = keys.map(({ state }) => [...state])
    const verdicts = questions.map((one, i) => this.#take(states[i] as number[], one, request))
    if (!verdicts.every(({ allowed }) => allowed)) return verdicts
    for (const [i, kept] of keys.entries()) {
      const one = questions[i] as Question
      if (one.units > 0) this.#keep(kept, states[i] as number[], from, one, request)
    }
    return verdicts
  }

  clear(): void {
    for (const keys of this.#policies.values()) for (const { account, bytes } of keys.values()) account?.release(bytes)
    this.#policies.clear()
  }

  /** Forgets expired states. */
  sweep(): void {
    const now = this.#clock.monotonic()
    for (const [id, keys] of this.#policies) {
      for (const [key, kept] of keys) if (kept.until <= now) forget(keys, key, kept)
      if (keys.size === 0) this.#policies.delete(id)
    }
  }

  get size(): number {
    let size = 0
    for (const keys of this.#policies.values()) size += keys.size
    return size
  }

  #change(from: string, question: Question, request: Decide, account: Account | undefined): Verdict {
    const { policy, key, kind } = question
    const kept = this.#keyOf(question, account)
    const last = kept.sequences.get(from) ?? 0
    if (last >= request.sequence) return DONE
    if (request.of !== undefined && last < request.of) return DONE
    if (kind === 'reset') {
      const keys = this.#policies.get(policy.id)
      if (keys?.get(key) === kept) forget(keys, key, kept)
      return DONE
    }
    const state = [...kept.state]
    changeBy(question, state, this.#timeOf(question, request))
    this.#keep(kept, state, from, question, request)
    return DONE
  }

  #take(state: number[], question: Question, request: Decide): Verdict {
    return takeBy(question, state, this.#timeOf(question, request))
  }

  #keep(kept: Kept, state: readonly number[], from: string, question: Question, request: Decide): void {
    const { policy, key } = question
    const lifetime = lifetimeBy(question, state, this.#timeOf(question, request))
    const bytes = keyBytes(key) + NUMBER_BYTES * state.length + SEQUENCE_BYTES * (kept.sequences.size + 1)
    if (bytes > kept.bytes && kept.account?.take(bytes - kept.bytes) === false) throw new Error('The table of keys is full.')
    kept.bytes = Math.max(bytes, kept.bytes)
    kept.state.length = 0
    for (const number of state) kept.state.push(number)
    kept.sequences.set(from, Math.max(request.sequence, kept.sequences.get(from) ?? 0))
    // A key may be used for years, by processes that come and go, so their lanes are bounded.
    if (kept.sequences.size > MOST_LANES) for (const one of kept.sequences.keys()) if (one !== from) kept.sequences.delete(one)
    kept.until = this.#clock.monotonic() + lifetime
    let keys = this.#policies.get(policy.id)
    if (keys === undefined) this.#policies.set(policy.id, (keys = new Map()))
    keys.set(key, kept)
  }

  #keyOf({ policy, key }: Question, account: Account | undefined): Kept {
    const keys = this.#policies.get(policy.id)
    const found = keys?.get(key)
    if (found !== undefined && found.until > this.#clock.monotonic()) return found
    if (found !== undefined && keys !== undefined) forget(keys, key, found)
    return { state: [], sequences: new Map(), until: 0, account, bytes: 0 }
  }

  #timeOf({ policy: { step, parameters } }: Question, { time, stepped }: Decide): number {
    return stepped === true || step.width?.(parameters) !== undefined ? time : this.#clock.now()
  }
}

function forget(keys: Map<string, Kept>, key: string, { account, bytes }: Kept): void {
  keys.delete(key)
  account?.release(bytes)
}

/** The decider of one process. */
export function deciderOf(decisions: HubDecisions, node: string): Decider {
  return {
    partOf: () => 0,
    decide(request) {
      try {
        return Promise.resolve(decisions.decide(node, request))
      } catch (error) {
        return Promise.reject(error)
      }
    },
  }
}
