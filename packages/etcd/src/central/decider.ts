import { WeirError } from '@weir/core'
import { changeBy, type Decide, type Decider, isDone, laneOf, lifetimeBy, type Question, takeBy, type Verdict } from '@weir/core/sync'
import type { Layout } from '../keys/layout.ts'
import type { Records, Write } from '../records/records.ts'
import { type DecidedState, newState, readState, textOf } from './state.ts'

/** The most requests that one round trip decides, and the most that wait for a round trip of their keys. */
const MOST_TOGETHER = 200
const MOST_WAITING = 10_000
/** Ten years, in milliseconds. Some debts never drain, so a lifetime needs a bound. */
const LONGEST_LIFE = 315_360_000_000

const DONE: Verdict = Object.freeze({ allowed: true, remaining: 0, resetAfterMs: 0, retryAfterMs: 0, delayMs: 0 })

interface Waiting {
  readonly request: Decide
  readonly names: readonly string[]
  /** On the monotonic clock. A request that still waits then is rejected. */
  readonly until: number
  resolve(verdicts: readonly Verdict[] | undefined): void
  reject(error: unknown): void
}

/** The parts of the process that a decider uses. */
export interface DeciderHost {
  readonly id: string
  readonly keys: Layout
  readonly records: Records
  readonly timeout: number
  monotonic(): number
  /** Resolves after this many milliseconds. */
  pause(milliseconds: number): Promise<void>
  /** The server's clock. */
  now(): number
  asWeirError(error: unknown): WeirError
}

/**
 * Decides requests by each policy's pure step: reads a key's numbers, calls the step, and writes them back if no other process has written.
 * While a round trip runs, further requests of this process for the same keys wait and share the next one. So they never compete with each
 * other.
 */
export class EtcdDecider implements Decider {
  readonly #host: DeciderHost
  /** Requests by their keys. They wait until the round trip before them ends. */
  readonly #lines = new Map<string, Waiting[]>()

  constructor(host: DeciderHost) {
    this.#host = host
  }

  /** All keys are in one part, because etcd is one store. */
  partOf(): number {
    return 0
  }

  decide(request: Decide): Promise<readonly Verdict[] | undefined> {
    const { keys, timeout } = this.#host
    const names = [...new Set(request.questions.map(({ policy, key }) => keys.decided(policy, key)))]
    const line = names.join('\n')
    const until = this.#host.monotonic() + timeout
    return new Promise((resolve, reject) => {
      const waiting = this.#lines.get(line)
      const own: Waiting = { request, names, until, resolve, reject }
      if (waiting === undefined) {
        const first = [own]
        this.#lines.set(line, first)
        void this.#serve(line, first)
      } else if (waiting.length < MOST_WAITING) waiting.push(own)
      else
        reject(
          new WeirError(
            'WEIR_STORE_UNAVAILABLE',
            `${MOST_WAITING} requests wait for etcd already. Check its load, or use coordination: "background".`,
          ),
        )
    })
  }

  async #serve(line: string, waiting: Waiting[]): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, MOST_TOGETHER).filter((one) => {
        if (one.until > this.#host.monotonic()) return true
        one.reject(new WeirError('WEIR_STORE_TIMEOUT', 'etcd did not answer earlier requests in time. Check its load and the network.'))
        return false
      })
      if (batch.length > 0) await this.#decideTogether(batch)
    }
    this.#lines.delete(line)
  }

  async #decideTogether(batch: readonly Waiting[]): Promise<void> {
    const { names } = batch[0] as Waiting
    const begun = this.#host.monotonic()
    let tries = 1
    let isShared = false
    const results: ((readonly Verdict[] | undefined)[] | undefined)[] = []
    try {
      const decide = (values: readonly (string | undefined)[]) => {
        const { isShared: shared, ...decided } = this.#answers(batch, names, values)
        isShared = shared
        return decided
      }
      tries = await this.#host.records.run([{ names, decide }], results)
    } catch (error) {
      for (const { reject } of batch) reject(this.#host.asWeirError(error))
      return
    }
    const [answers] = results
    for (const [i, { resolve, reject }] of batch.entries()) {
      if (answers === undefined)
        reject(
          new WeirError('WEIR_STORE_UNAVAILABLE', 'Too many processes write the same key of etcd at once. Use coordination: "background".'),
        )
      else resolve(answers[i])
    }
    // The last writer has the current state and would always be first to write again, so it pauses to let another process write.
    if (isShared) await this.#host.pause((this.#host.monotonic() - begun) / Math.max(1, tries))
  }

  /** Decides all requests in order. Returns their verdicts and the new values of the keys. */
  #answers(
    batch: readonly Waiting[],
    names: readonly string[],
    values: readonly (string | undefined)[],
  ): { readonly writes: readonly Write[]; readonly result: (readonly Verdict[] | undefined)[]; readonly isShared: boolean } {
    const now = this.#host.now()
    const states = new Map<string, DecidedState>()
    for (const [i, name] of names.entries()) {
      const text = values[i]
      const state = text === undefined ? newState() : readState(text)
      // The value can't be read, whichever process wrote it. These requests are decided without it.
      if (state === undefined) return { writes: names.map(() => undefined), result: batch.map(() => undefined), isShared: false }
      states.set(name, state.until > now ? state : newState())
    }
    const changed = new Set<string>()
    const result = batch.map(({ request }) => this.#answer(request, states, changed, now))
    const writes = names.map((name): Write => {
      const state = states.get(name) as DecidedState
      if (!changed.has(name)) return undefined
      return state.until <= now ? 'remove' : { value: textOf(state), life: state.until - now }
    })
    const isShared = [...states.values()].some((state) => this.#isShared(state))
    return { writes, result, isShared }
  }

  #answer(request: Decide, states: Map<string, DecidedState>, changed: Set<string>, now: number): readonly Verdict[] {
    const { questions } = request
    const [question] = questions
    if (question !== undefined && question.kind !== 'take') return [this.#tell(question, request, states, changed, now)]
    const held = questions.map((one) => states.get(this.#nameOf(one)) as DecidedState)
    if (
      isDone(
        request,
        held.map((state) => this.#lastOf(state, request)),
      )
    ) {
      return questions.map((one, i) => ({
        ...take([...(held[i] as DecidedState).numbers], { ...one, units: 0 }, request, now),
        allowed: true,
      }))
    }
    const numbers = held.map((state) => [...state.numbers])
    const verdicts = questions.map((one, i) => take(numbers[i] as number[], one, request, now))
    if (!verdicts.every(({ allowed }) => allowed)) return verdicts
    for (const [i, one] of questions.entries()) {
      if (one.units > 0) this.#keep(held[i] as DecidedState, numbers[i] as number[], one, request, states, changed, now)
    }
    return verdicts
  }

  #tell(question: Question, request: Decide, states: Map<string, DecidedState>, changed: Set<string>, now: number): Verdict {
    const name = this.#nameOf(question)
    const state = states.get(name) as DecidedState
    const last = this.#lastOf(state, request)
    if (last >= request.sequence) return DONE
    if (request.of !== undefined && last < request.of) return DONE
    if (question.kind === 'reset') {
      states.set(name, newState())
      changed.add(name)
      return DONE
    }
    const numbers = [...state.numbers]
    changeBy(question, numbers, timeOf(question, request, now))
    this.#keep(state, numbers, question, request, states, changed, now)
    return DONE
  }

  #keep(
    { sequences }: DecidedState,
    numbers: number[],
    question: Question,
    request: Decide,
    states: Map<string, DecidedState>,
    changed: Set<string>,
    now: number,
  ): void {
    const lifetime = Math.min(LONGEST_LIFE, lifetimeBy(question, numbers, timeOf(question, request, now)))
    const last = new Map(sequences)
    const from = laneOf(this.#host.id, request)
    const before = last.get(from) ?? 0
    // Moves the lane to the end, because `textOf` keeps the last lanes.
    last.delete(from)
    last.set(from, Math.max(request.sequence, before))
    const name = this.#nameOf(question)
    states.set(name, { numbers, sequences: last, until: now + lifetime })
    changed.add(name)
  }

  #isShared({ sequences }: DecidedState): boolean {
    const { id } = this.#host
    for (const from of sequences.keys()) if (from !== id && !from.startsWith(`${id} `)) return true
    return false
  }

  #lastOf({ sequences }: DecidedState, request: Decide): number {
    return sequences.get(laneOf(this.#host.id, request)) ?? 0
  }

  #nameOf({ policy, key }: Question): string {
    return this.#host.keys.decided(policy, key)
  }
}

function take(numbers: number[], question: Question, request: Decide, now: number): Verdict {
  return takeBy(question, numbers, timeOf(question, request, now))
}

/** Steps that count in cells of the epoch use the processes' common time. All others use the server's clock. */
function timeOf({ policy: { step, parameters } }: Question, { time, stepped }: Decide, now: number): number {
  return stepped === true || step.width?.(parameters) !== undefined ? time : now
}
