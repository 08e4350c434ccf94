import { warnProcess } from '../report/errors.ts'
import type { EventName } from '../report/events.ts'
import { stackOf } from '../report/show.ts'
import type { NoAnswer } from '../report/user-function.ts'

let saidLocal = false

/** Warns, once in a process, that this process limits alone. */
export function warnLocal(): void {
  if (saidLocal) return
  saidLocal = true
  warnProcess(
    'WEIR_WARN_LOCAL_ONLY',
    'This throttler has no "store", so it limits this process alone. Add a store such as redisStore(...). If one process is all you have, set coordination: "local" on its policies.',
  )
}

let saidFake = false

/** Warns, once in a process, that a test fakes only a part of time, so that no time passes. */
export function warnOfHalfFakedTime(faked: string, real: string): void {
  warnOfFakeTime(
    `${faked} is faked, but ${real} is not, so no interval, cooldown or wait ends. Fake both, with vi.useFakeTimers() in vitest or jest.useFakeTimers() in Jest, or beside real sockets with vi.useFakeTimers({ toFake: ['Date', 'hrtime'] }). Or pass clock: manualClock(), imported from "@weir/testing".`,
  )
}

/** Warns, once in a process, that a store that uses sockets can't answer in faked time. */
export function warnOfFakeTimers(kind: string): void {
  warnOfFakeTime(
    `Timers are faked, but the store "${kind}" uses real sockets, so its replies never arrive. Use memoryStore() in this test, or keep the timers real: vi.useFakeTimers({ toFake: ['Date', 'hrtime'] }).`,
  )
}

function warnOfFakeTime(message: string): void {
  if (saidFake) return
  saidFake = true
  warnProcess('WEIR_WARN_FAKE_TIME', message)
}

/** Warns that a listener has failed. Not as an event, because the listener's event may be `warning`. */
export function warnOfListener(event: EventName, failure: NoAnswer): void {
  warnProcess(
    'WEIR_WARN_LISTENER_FAILED',
    `The listener for "${event}" ${failure.problem}. Weir keeps calling it. Fix the listener: ${stackOf(failure.error)}`,
  )
}
