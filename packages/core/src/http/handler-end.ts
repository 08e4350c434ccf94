import type { Decision } from '../decide/decision.ts'
import type { Slots } from '../decide/policy.ts'
import type { Answering } from '../report/when-ended.ts'

/** A request with slots or a reservation that are kept until its handler has ended. */
class Flight {
  closed = false
  handlers = 0
  readonly releases: (() => void)[] = []

  settle(): void {
    if (this.closed && this.handlers === 0) for (const release of this.releases.splice(0)) release()
  }
}

// The key is the response, not the decision, because throttlers in several places decide one request. So a caller that reports a handler's
// end needs no list of decisions.
const flights = new WeakMap<Answering, Flight>()

/**
 * Releases a request's slots or reservation as soon as the response has been sent or its connection has closed, and no handler runs for it any more.
 *
 * @returns false if the response has ended already: its slots are free, and no handler should start
 */
export function keepUntilHandled(response: Answering, { whenEnded }: Pick<Slots, 'whenEnded'>, release: () => void): boolean {
  let flight = flights.get(response)
  if (flight === undefined) {
    const made = new Flight()
    flights.set(response, (flight = made))
    whenEnded(response, () => {
      made.closed = true
      made.settle()
    })
  }
  if (flight.closed) release()
  else flight.releases.push(release)
  return !flight.closed
}

/**
 * Keeps the slots of a request until it has ended.
 *
 * @returns false if its client has already disconnected. Then no handler should start
 */
export function keepSlots(
  throttler: { release(decision: Pick<Decision, 'parts'>): void },
  { parts }: Decision,
  response: Answering,
): boolean {
  let open = true
  for (const part of parts) {
    const slots = part.cost > 0 ? part.policy?.algorithm.slots : undefined
    if (slots === undefined) continue
    const release = () => throttler.release({ parts: [part] })
    if (slots.releaseOn === 'response') slots.whenEnded(response, release)
    else open = keepUntilHandled(response, slots, release) && open
  }
  return open
}

/**
 * Reports that a handler starts. Adapters call this if their framework also reports when a handler has ended: until then the request
 * keeps its slots (`concurrency()`) and reservations (`estimate`), even if its client has left.
 *
 * @param response the response that was passed to `guard.check`
 * @returns the function to call once the handler has ended, however it ended; undefined if the request has neither, so that there is
 * nothing to report; null if its client has left and its slots are free again: don't start the handler
 */
export function handlerStarts(response: Answering): (() => void) | undefined | null {
  const flight = flights.get(response)
  if (flight === undefined) return undefined
  if (flight.closed && flight.handlers === 0) return null
  flight.handlers++
  let ended = false
  return () => {
    if (ended) return
    ended = true
    flight.handlers--
    flight.settle()
  }
}
