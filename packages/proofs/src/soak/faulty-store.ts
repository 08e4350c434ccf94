import type { Store } from '@weir/core'
import { connectToHub, Hub } from '@weir/core/memory'
import { backgroundStore } from '@weir/core/sync'
import type { NodeClock } from '@weir/testing'
import { INTERVAL } from './cells.ts'

/** The kinds of failure, each of which lasts for a whole soak. */
export const FAULTS = ['down', 'hung', 'late', 'silent', 'flapping'] as const
export type Fault = (typeof FAULTS)[number]

/** Intervals before the store fails for the first time, so that it has answered before. */
const BEFORE = 5
/** Milliseconds after which a late store answers, longer than any request waits. */
const LATE = 90_000
/** Milliseconds after which a flapping store rejects a request, as a real one does. */
const GIVES_UP = 1_000
/** Intervals in which a flapping store answers, rejects and hangs. */
const ANSWERS = 6
const REJECTS = 7
const HANGS = 7
/** Intervals after which everything repeats. */
export const PERIOD: number = ANSWERS + REJECTS + HANGS

const never = (): Promise<never> => new Promise(() => {})

/** A hub behind a connection that fails. Intervals are counted from the clock's start. */
export function faultyStore(fault: Fault, clock: NodeClock): Store {
  const hub = new Hub(clock)
  const begun = clock.monotonic()
  const later = (milliseconds: number): Promise<void> =>
    new Promise((resolve) => {
      clock.setTimeout(resolve, milliseconds)
    })

  async function failed<Reply>(ask: () => Promise<Reply>): Promise<Reply> {
    const interval = Math.floor((clock.monotonic() - begun) / INTERVAL)
    if (fault === 'silent') return never()
    if (interval < BEFORE) return ask()
    if (fault === 'down') throw new Error('rejected')
    if (fault === 'hung') return never()
    if (fault === 'late') {
      const reply = await ask()
      await later(LATE)
      return reply
    }
    const phase = (interval - BEFORE) % PERIOD
    if (phase < REJECTS) throw new Error('rejected')
    if (phase >= REJECTS + HANGS) return ask()
    await later(GIVES_UP)
    throw new Error('no answer')
  }

  return backgroundStore({
    kind: 'faulty',
    decides: () => true,
    open: (node) => {
      const connection = connectToHub(hub, node)
      return {
        sync: (request) => failed(() => connection.sync(request)),
        decider: async () => {
          const decider = await connection.decider?.()
          if (decider === undefined) throw new Error('The hub does not decide')
          return { partOf: (key) => decider.partOf(key), decide: (request) => failed(() => decider.decide(request)) }
        },
        close: () => connection.close(),
      }
    },
  })
}
