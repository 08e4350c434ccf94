import process, { hrtime } from 'node:process'
import { inWorkers, RequestClock, workersRuntime } from './request-clock.ts'

/** A timer of a clock. It is opaque to all other code. */
export type TimerHandle = unknown

/**
 * The source of a throttler's time and timers. It is injected, so that the code that ships also runs in virtual time.
 *
 * All times are milliseconds, fractions allowed.
 */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. May step in either direction. */
  now(): number
  /** Milliseconds since an arbitrary origin. Never goes back. Read once per decision, so it must be cheap. */
  monotonic(): number
  /** Calls `callback` once after `delay` milliseconds. The timer must not keep the process alive. */
  setTimeout(callback: () => void, delay: number): TimerHandle
  /** Cancels a timer of `setTimeout`. Does nothing if it has already fired, and for undefined. */
  clearTimeout(handle: TimerHandle): void
  /** Calls `callback` soon after the current turn of the event loop. */
  defer(callback: () => void): void
  /**
   * Keeps the process alive until the returned function is called, while code awaits a promise. A virtual clock needs no such function.
   */
  hold?(): () => void
  /** Whether the timers run only while requests are being answered, because the runtime has no others. */
  readonly driven?: boolean
  /** With `driven`: whether code runs outside of a request, where nothing may be started. */
  readonly stopped?: boolean
}

/**
 * Keeps the process alive until a promise that a user may await has settled. The timers and sockets of a throttler don't keep the process
 * alive, so it could otherwise end earlier.
 */
export function keptAlive<T>(clock: Clock, promise: Promise<T>): Promise<T> {
  const release = clock.hold?.()
  if (release !== undefined) promise.then(release, release)
  return promise
}

/**
 * Keeps the request that awaits a promise open, if requests drive the clock: it may end only once it has its own answer. Otherwise nothing
 * is needed, because waiting requests keep the process alive together.
 */
export function keptOpen<T>(clock: Clock, promise: Promise<T>): Promise<T> {
  return clock.driven === true ? keptAlive(clock, promise) : promise
}

/**
 * The clock of this process: `Date.now`, `process.hrtime`, unreferenced timers, `setImmediate`. It follows fake timers of vitest, Jest and
 * sinon that replace these functions, and a fake `hrtime` if `Date` is faked too. Reading the clock is most of a decision, and `hrtime` is
 * the cheapest clock of Node.js. With `performance.now` a whole decision costs a tenth more.
 */
const processClock: Clock = {
  now: () => Date.now(),
  monotonic: () => {
    // Looking up `process.hrtime` costs a third of reading it.
    if (Date !== RealDate || followed !== undefined) return follow()
    const time = realHrtime()
    return time[0] * 1e3 + time[1] * 1e-6
  },
  setTimeout: (callback, delay) => {
    const handle = setTimeout(callback, delay)
    if (setTimeout !== realTimeout && isFake(handle) && isRealDate()) noticeHalf('setTimeout', 'Date')
    return handle.unref()
  },
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
  defer: (callback) => {
    setImmediate(callback)
  },
  hold: () => {
    timer ??= realInterval(() => {}, A_DAY).unref()
    if (holders++ === 0) timer.ref()
    let held = true
    return () => {
      if (held && --holders === 0) timer?.unref()
      held = false
    }
  },
}

/** Waits for a promise that never rejects, for at most this many milliseconds. */
export function within(clock: Clock, timeout: number, promise: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimeout(resolve, Math.max(0, timeout))
    void promise.then(() => {
      clock.clearTimeout(timer)
      resolve()
    })
  })
}

/** The default clock of throttlers. In Cloudflare Workers it is driven by requests. */
export const systemClock: Clock = inWorkers() ? new RequestClock(workersRuntime) : processClock

/** Milliseconds. */
const A_DAY = 86_400_000
// The real function, because a fake timer keeps no process alive.
const realInterval = setInterval
/** Undefined if this module is loaded after a test has replaced the function. */
const realTimeout = isRealDate() ? setTimeout : undefined
/** One timer for all awaited promises of this process: starting and ending a timer costs more than counting. */
let timer: NodeJS.Timeout | undefined
let holders = 0

const RealDate = Date
// A constant, because in CommonJS an import is looked up at each use.
const realHrtime = hrtime
/**
 * The function that was read last, and the milliseconds by which it is behind. Undefined until fake timers are installed for the first
 * time. It is one variable, because every decision reads it.
 */
let followed: { readonly by: typeof hrtime; readonly behind: number } | undefined =
  process.hrtime === realHrtime ? undefined : { by: realHrtime, behind: 0 }

/** The time from the first fake timers on. The real clock has an arbitrary origin, so time continues from the last value. */
function follow(): number {
  const { by: before, behind } = followed ?? { by: realHrtime, behind: 0 }
  const by = process.hrtime
  if (by === realHrtime && !isRealDate()) noticeHalf('Date', 'process.hrtime')
  if (by !== before || followed === undefined) {
    // Fake timers count from 0, so the time that a test has advanced before this first read has passed.
    const begun = by === realHrtime || isRealDate() ? millisecondsOf(by()) : 0
    followed = { by, behind: by === before ? behind : behind + millisecondsOf(before()) - begun }
    if (by !== realHrtime && timersAreFake()) for (const notice of watching) notice()
  }
  return millisecondsOf(by()) + followed.behind
}

function millisecondsOf([seconds, nanoseconds]: readonly [number, number]): number {
  return seconds * 1e3 + nanoseconds * 1e-6
}

/** Whether `Date` is the engine's own. The `Date` at load may be a fake as well. */
function isRealDate(): boolean {
  return Function.prototype.toString.call(Date) === 'function Date() { [native code] }'
}

/** Whether a test has replaced the timers of this process. A wrapper that only watches the real timers replaces nothing. */
export function timersAreFake(): boolean {
  if (realTimeout === undefined || setTimeout === realTimeout) return false
  const handle = setTimeout(() => {}, 0)
  clearTimeout(handle)
  return isFake(handle)
}

function isFake(handle: NodeJS.Timeout): boolean {
  if (realTimeout === undefined) return false
  if (realHandle === undefined) {
    realHandle = realTimeout(() => {}, 0)
    realHandle.close()
  }
  return handle.constructor !== realHandle.constructor
}

/** A real timer that has ended, to compare others with. */
let realHandle: NodeJS.Timeout | undefined

/** Functions to call when timers are faked from now on. */
const watching = new Set<() => void>()

/** Calls a function when `systemClock` is first read after a test has faked the timers. The returned function cancels this. */
export function whenTimersAreFaked(notice: () => void): () => void {
  watching.add(notice)
  return () => watching.delete(notice)
}

/** Receives the names of the faked and of the real functions that `systemClock` uses. */
type HalfFaked = (faked: string, real: string) => void

let noticeHalf: HalfFaked = () => {}

/** Calls a function if a test has faked so little that no time passes for a throttler, whatever it advances. It may be called often. */
export function whenHalfFaked(notice: HalfFaked): void {
  noticeHalf = notice
}
