import { isPromise } from 'node:util/types'
import { reasonOf, show } from './show.ts'

/** The return value of a user function: the answer, or a promise of it. */
export type Awaitable<T> = T | PromiseLike<T>

/** Time-outs, and the time by which they run, as a `Clock` has them. */
export interface Timers {
  monotonic(): number
  setTimeout(callback: () => void, delay: number): unknown
  clearTimeout(handle: unknown): void
  /** Keeps the process alive until the returned function is called. */
  hold?(): () => void
}

/** How long a function of the user's may take to answer, in milliseconds, and by which clock. */
export interface Patience {
  readonly clock: Timers
  readonly timeout: number
}

/** How long a function may take where nobody says so, in milliseconds. */
export const CALLBACK_TIMEOUT = 1_000

/** Stands for the answer of a function that gave none. */
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
 * Calls a function of the user's. All of them are called by `ask`, `askAll` or `tell`.
 *
 * @returns its answer, `NoAnswer` when it threw, or what `isThenable` is true of: then `settle` waits for the answer
 */
export function ask<Given>(question: (given: Given) => unknown, given: Given): unknown {
  try {
    return question(given)
  } catch (error) {
    return new NoAnswer('threw', error ?? 'nothing')
  }
}

/** As `ask`, for functions of several arguments. */
export function askAll<Given extends readonly unknown[]>(question: (...given: Given) => unknown, ...given: Given): unknown {
  try {
    return question(...given)
  } catch (error) {
    return new NoAnswer('threw', error ?? 'nothing')
  }
}

/** Whether an answer has to be waited for: a promise, or anything else with a `then`. Whatever it is, this does not throw. */
export function isThenable(answer: unknown): answer is object {
  if ((typeof answer !== 'object' && typeof answer !== 'function') || answer === null) return false
  try {
    return typeof (answer as { then?: unknown }).then === 'function'
  } catch {
    // `settle` finds out what is wrong with it.
    return true
  }
}

/**
 * Waits for an answer. The promise that is returned is never rejected, and holds `NoAnswer` when the answer was a failure or
 * did not come in time. A later answer or rejection is ignored, and does not end the process.
 */
export function settle(answer: object, { clock, timeout }: Patience): Promise<Settled> {
  return new Promise((resolve) => {
    // Timers of a throttler don't; and somebody waits for what the answer is needed for.
    const release = clock.hold?.()
    const timer = clock.setTimeout(() => done(new NoAnswer(`did not answer within ${timeout} ms`)), timeout)
    const done = (value: unknown): void => {
      clock.clearTimeout(timer)
      release?.()
      resolve({ value })
    }
    listen(
      answer,
      (value) => {
        // Such a thing could be a promise of itself, and would never end.
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
 * Calls a function that nothing is expected of, such as a listener, and does not wait for it.
 *
 * @param failed is called when it throws, or when the promise that it returns is rejected
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

/** Hears what becomes of an answer. A foreign `then` may throw, call both functions or call them twice: the first call holds. */
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
  // If its `then` is a foreign one, nothing handles the rejection of the promise below yet.
  hush(answer)
}

/** Takes care that the rejection of a promise, which nobody waits for, does not end the process. */
export function hush(value: unknown): void {
  if (!isPromise(value)) return
  try {
    Promise.prototype.then.call(value, nothing, nothing)
  } catch {
    // Its constructor is a foreign one, and broken.
  }
}

function nothing(): void {}
