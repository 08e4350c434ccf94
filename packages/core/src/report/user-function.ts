import { isPromise } from 'node:util/types'
import { reasonOf, show } from './show.ts'

/** The return value of a user function: the answer, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>

/** Timeouts, and the time by which they run, as in a `Clock`. */
export interface Timers {
  monotonic(): number
  setTimeout(callback: () => void, delay: number): unknown
  clearTimeout(handle: unknown): void
  /** Keeps the process alive until the returned function is called. */
  hold?(): () => void
}

/** The time within which a user function must answer, in milliseconds, and the clock that measures it. */
export interface Patience {
  readonly clock: Timers
  readonly timeout: number
}

/** The default time for a user function to answer, in milliseconds. */
export const CALLBACK_TIMEOUT = 1_000

/** Replaces the answer of a function that gave none. */
export class NoAnswer {
  /** The thrown value, or the reason with which a promise was rejected. */
  readonly error: unknown
  readonly #how: string

  constructor(how: string, error?: unknown) {
    this.#how = how
    this.error = error
  }

  /** A description of the failure that follows the function's name in a message. */
  get problem(): string {
    return this.error === undefined ? this.#how : `${this.#how} ${show(reasonOf(this.error))}`
  }
}

/** The result of a promise. It is boxed, because resolving a promise with a foreign value would look for its `then` again. */
export interface Settled {
  readonly value: unknown
}

/**
 * Calls a user function. Every user function is called by `ask`, `askAll` or `tell`.
 *
 * @returns its answer, or `NoAnswer` if it threw. If `isThenable` is true of the answer, `settle` waits for it
 */
export function ask<Given>(question: (given: Given) => unknown, given: Given): unknown {
  try {
    return question(given)
  } catch (error) {
    return new NoAnswer('threw', error ?? 'nothing')
  }
}

/** Does the same as `ask`, for functions of several arguments. */
export function askAll<Given extends readonly unknown[]>(question: (...given: Given) => unknown, ...given: Given): unknown {
  try {
    return question(...given)
  } catch (error) {
    return new NoAnswer('threw', error ?? 'nothing')
  }
}

/** Whether an answer is a promise, or anything else with a `then`, and so needs a wait. It never throws, whatever the answer is. */
export function isThenable(answer: unknown): answer is object {
  if ((typeof answer !== 'object' && typeof answer !== 'function') || answer === null) return false
  try {
    return typeof (answer as { then?: unknown }).then === 'function'
  } catch {
    // `settle` finds the problem.
    return true
  }
}

/** Promises with a timeout of their own. `settle` waits for them without another one, which would end at the same time. */
export const bounded: WeakSet<object> = new WeakSet()

/**
 * Waits for an answer. The returned promise never rejects. It resolves with `NoAnswer` if the answer was a failure or did not come in time.
 * A later answer or rejection is ignored, and does not end the process.
 */
export function settle(answer: object, { clock, timeout }: Patience): Promise<Settled> {
  return new Promise((resolve) => {
    // A throttler's timers don't keep the process alive. This wait does, because a request depends on the answer.
    const release = clock.hold?.()
    const late = () => done(new NoAnswer(`did not answer within ${timeout} ms`))
    const timer = bounded.has(answer) ? undefined : clock.setTimeout(late, timeout)
    const done = (value: unknown): void => {
      clock.clearTimeout(timer)
      release?.()
      resolve({ value })
    }
    listen(
      answer,
      (value) => {
        // A promise of a promise could contain itself, and would never end.
        if (isThenable(value)) {
          hush(value)
          done(new NoAnswer('resolved to a promise'))
        } else done(value)
      },
      (error) => done(new NoAnswer('rejected with', error ?? 'nothing')),
    )
  })
}

/**
 * Calls a function without an expected answer, such as a listener, and does not wait for it.
 *
 * @param failed is called when the function throws, or when its promise rejects
 */
export function tell<Given extends readonly unknown[]>(
  failed: (failure: NoAnswer) => void,
  listener: (...given: Given) => unknown,
  ...given: Given
): void {
  let answer: unknown
  try {
    answer = listener(...given)
  } catch (error) {
    failed(new NoAnswer('threw', error ?? 'nothing'))
    return
  }
  if (isThenable(answer)) listen(answer, hush, (error) => failed(new NoAnswer('rejected with', error ?? 'nothing')))
}

/** Observes an answer. A foreign `then` may throw, call both functions or call them twice, so only the first call counts. */
function listen(answer: object, fulfilled: (value: unknown) => void, rejected: (error: unknown) => void): void {
  let heard = false
  const once =
    (hear: (value: unknown) => void) =>
    (value: unknown): void => {
      if (heard) hush(value)
      else {
        heard = true
        hear(value)
      }
    }
  const fail = once(rejected)
  try {
    const { then } = answer as PromiseLike<unknown>
    hush(then.call(answer, once(fulfilled), fail))
  } catch (error) {
    fail(error)
  }
  // If its `then` is a foreign one, the rejection of the promise itself is still unhandled.
  hush(answer)
}

/** Keeps the rejection of a promise that no code waits for from ending the process. */
export function hush(value: unknown): void {
  if (!isPromise(value)) return
  try {
    Promise.prototype.then.call(value, nothing, nothing)
  } catch {
    // The promise has a foreign constructor that throws.
  }
}

function nothing(): void {}
