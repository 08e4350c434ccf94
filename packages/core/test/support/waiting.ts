import type { Decision } from '../../src/decide/decision.ts'
import type { AcquireError, AcquireFailure } from '../../src/queue/acquire-error.ts'
import type { AcquireOptions, Priority } from '../../src/queue/options.ts'
import type { Node, Scene } from './nodes.ts'

/** The result of a request that waited, and its time in milliseconds since the world began. */
export interface Outcome {
  readonly name: string
  at: number | undefined
  decision: Decision | undefined
  failure: AcquireFailure | undefined
  error: AcquireError | undefined
}

/** The priorities, lowest first. */
export const PRIORITIES: readonly Priority[] = ['sheddable', 'low', 'default', 'high', 'critical']

/** Makes requests wait, and notes their results, in the order in which they end. */
export interface Waiting {
  readonly ended: Outcome[]
  acquire(key: string, options?: AcquireOptions & { name?: string }): Outcome
  tryAcquire(key: string, options?: AcquireOptions & { name?: string }): Outcome
  /** The names of the allowed requests, in their order. */
  readonly went: string[]
}

/** Loads the queue in real time. Await this before virtual time matters. */
export async function waiting({ world }: Scene, node: Node): Promise<Waiting> {
  await node.acquire('', { signal: AbortSignal.abort() }).catch(() => {})
  const ended: Outcome[] = []
  let number = 0
  const note = (name: string, made: Promise<Decision>): Outcome => {
    const outcome: Outcome = { name, at: undefined, decision: undefined, failure: undefined, error: undefined }
    made
      .then(
        (decision) => {
          outcome.decision = decision
        },
        (error: AcquireError) => {
          outcome.failure = error.reason
          outcome.error = error
        },
      )
      .finally(() => {
        outcome.at = world.time
        ended.push(outcome)
      })
    return outcome
  }
  return {
    ended,
    get went() {
      return ended.filter(({ decision }) => decision?.allowed).map(({ name }) => name)
    },
    acquire: (key, { name = `${key}${number++}`, ...options } = {}) => note(name, node.acquire(key, options)),
    tryAcquire: (key, { name = `${key}${number++}`, ...options } = {}) => note(name, node.tryAcquire(key, options)),
  }
}

/** The most requests that started within any second. */
export function mostInASecond(times: readonly number[]): number {
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length))
}

/** The times at which allowed requests started, in their order. */
export function startTimes(outcomes: readonly Outcome[]): number[] {
  const started = outcomes.filter(({ decision }) => decision?.allowed === true)
  return started.map(({ at }) => at as number).sort((a, b) => a - b)
}
