import process, { hrtime } from 'node:process'

/** A timer as its clock knows it; opaque to all other code. */
export type TimerHandle = unknown

/**
 * Where a throttler gets time and timers from. Injected, so that the code that ships also runs in virtual time.
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
  /** Keeps the process alive, while somebody awaits something, until the returned function is called. A virtual clock needs none. */
  hold?(): () => void
}

/**
 * Hands out a promise that a user may await. Neither timers nor sockets of a throttler keep the process alive, so that without this it
 * could end before the promise has settled.
 */
export function keptAlive<T>(clock: Clock, promise: Promise<T>): Promise<T> {
  const release = clock.hold?.()
  if (release !== undefined) promise.then(release, release)
  return promise
}

/**
 * The clock of this process: `Date.now`, `process.hrtime`, unreferenced timers, `setImmediate`. Fake timers of vitest, Jest and sinon
 * that replace them are followed, `hrtime` where `Date` is replaced, too. Reading the clock is most of a decision; of those that
 * Node.js has, `hrtime` costs least (`performance.now` a tenth more of a whole decision).
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => {
    // To look `process.hrtime` up costs a third of reading it.
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

/** Milliseconds. */
const A_DAY = 86_400_000
// A timer that is fake keeps no process alive.
const realInterval = setInterval
/** Unknown where this is loaded after a test has replaced it. */
const realTimeout = isRealDate() ? setTimeout : undefined
/** One for all that is awaited in this process: to begin and end one costs more than to count. */
let timer: NodeJS.Timeout | undefined
let holders = 0

const RealDate = Date
// In CommonJS an import is looked up each time.
const realHrtime = hrtime
/**
 * Undefined until fake timers are installed for the first time: what told the time last, and the milliseconds by which it is behind.
 * One variable, as every decision looks at it.
 */
let followed: { readonly by: typeof hrtime; readonly behind: number } | undefined =
  process.hrtime === realHrtime ? undefined : { by: realHrtime, behind: 0 }

/** The time while fake timers are installed, and after: the real one counts from anywhere, and time goes on from where it was. */
function follow(): number {
  const { by: before, behind } = followed ?? { by: realHrtime, behind: 0 }
  const by = process.hrtime
  if (by === realHrtime && !isRealDate()) noticeHalf('Date', 'process.hrtime')
  if (by !== before || followed === undefined) {
    // Fake timers count from 0: what a test has advanced before this first look is time that has passed.
    const begun = by === realHrtime || isRealDate() ? millisecondsOf(by()) : 0
    followed = { by, behind: by === before ? behind : behind + millisecondsOf(before()) - begun }
    if (by !== realHrtime && timersAreFake()) for (const notice of watching) notice()
  }
  return millisecondsOf(by()) + followed.behind
}

function millisecondsOf([seconds, nanoseconds]: readonly [number, number]): number {
  return seconds * 1e3 + nanoseconds * 1e-6
}

/** Whether `Date` is the engine's own. What it was at load may be a fake as well. */
function isRealDate(): boolean {
  return Function.prototype.toString.call(Date) === 'function Date() { [native code] }'
}

/** Whether a test has replaced the timers of this process. What only stands around the real ones, to watch them, replaces nothing. */
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

/** One that is over, to compare others with. */
let realHandle: NodeJS.Timeout | undefined

/** Functions to call when timers are faked from now on. */
const watching = new Set<() => void>()

/** Calls a function when `systemClock` is first read after a test has faked the timers, until what it returns is called. */
export function whenTimersAreFaked(notice: () => void): () => void {
  watching.add(notice)
  return () => watching.delete(notice)
}

/** Receives the names of the faked and of the real functions that `systemClock` uses. */
type HalfFaked = (faked: string, real: string) => void

let noticeHalf: HalfFaked = () => {}

/** Calls a function where a test has faked so little that no time passes for a throttler, whatever the test advances. It may be called often. */
export function whenHalfFaked(notice: HalfFaked): void {
  noticeHalf = notice
}
