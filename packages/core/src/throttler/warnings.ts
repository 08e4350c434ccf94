import { warnProcess } from '../report/errors.ts'
import type { EventName } from '../report/events.ts'
import { stackOf } from '../report/show.ts'
import type { NoAnswer } from '../report/user-function.ts'

let saidLocal = false

/** Says, once in a process, that it limits itself alone. */
export function warnLocal(): void {
  if (saidLocal) return
  saidLocal = true
  warnProcess(
    'WEIR_LOCAL_ONLY',
    'This throttler has no store, so it limits this process alone. Give it a store such as redisStore(...), or its policies coordination: "local" to say that this is meant.',
  )
}

/** Says that a listener has failed: the event `warning` could be what it listens to. */
export function warnOfListener(event: EventName, failure: NoAnswer): void {
  warnProcess(
    'WEIR_LISTENER',
    `A listener of "${event}" ${failure.problem}. It is told of further events all the same. ${stackOf(failure.error)}`,
  )
}
