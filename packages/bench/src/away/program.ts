import { createThrottler, type FailMode, type Throttler } from '@weir/core'
import { connectToHub, Hub } from '@weir/core/memory'
import { backgroundStore } from '@weir/core/sync'
import { type ManualClock, manualClock } from '@weir/testing'
import { input, report } from '../harness/child.ts'
import { seeded } from '../harness/random.ts'
import { DEADLINE, LIMIT } from './rule.ts'

export interface AwayInput {
  readonly failMode: Extract<FailMode, 'share' | 'open' | 'closed'>
  /** The part of the key's traffic that each process gets. */
  readonly parts: readonly number[]
}

export interface AwayResult {
  /** Requests allowed in each interval: store up, store down from the middle on, down, up from the middle on, up. */
  readonly allowed: readonly number[]
  /** Requests that were decided 50 ms after they were made, or later, and the longest wait, in milliseconds. */
  readonly waited: number
  readonly longest: number
}

/** Units that are offered in an interval: twice the limit, evenly over time. */
const OFFERED = 2 * LIMIT
const INTERVAL = 10_000
/** Duration of a round trip in milliseconds. */
const ROUND_TRIP = 1
/** Milliseconds after which a request to the hung store fails. */
const HANGS = 1_000

const { failMode, parts } = input<AwayInput>()
const clock: ManualClock = manualClock()
const hub = new Hub(clock)
let away = false

const later = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))

/** Sends a request to the store and waits for its reply, unless the store hangs. */
async function travels<Reply>(ask: () => Promise<Reply>): Promise<Reply> {
  await later(ROUND_TRIP / 2)
  if (away) {
    await later(HANGS)
    throw new Error('no answer')
  }
  const reply = await ask()
  await later(ROUND_TRIP / 2)
  return reply
}

/** The processes from which the store got requests. */
const asking = new Set<object>()

function open(): Throttler {
  const store = backgroundStore({
    kind: 'virtual',
    address: 'hub',
    decides: () => true,
    open(node) {
      const connection = connectToHub(hub, node)
      return {
        sync: (request) => travels(() => connection.sync(request)),
        close: () => connection.close(),
        async decider() {
          const decider = await connection.decider?.()
          if (decider === undefined) throw new Error('The hub does not decide')
          return {
            partOf: (key) => decider.partOf(key),
            decide(request) {
              asking.add(node)
              return travels(() => decider.decide(request))
            },
          }
        },
      }
    },
  })
  const policy = { limit: LIMIT, interval: INTERVAL, coordination: 'central', failMode, storeTimeout: DEADLINE } as const
  return createThrottler({ policies: [policy], store, clock, random }).start()
}

const random = seeded(11)
const nodes = parts.map(open)
/**
 * Waits until all processes use the store. Code that is loaded on demand takes real time, in which the clock of the processes
 * stands still.
 */
async function untilAsking(): Promise<void> {
  for (let i = 0; i < 100; i++) {
    const asked = clock.monotonic()
    const waits: number[] = []
    // While the code is being loaded a process decides without the store, sometimes immediately.
    asking.clear()
    for (const node of nodes) void node.checkAsync('first').then(() => waits.push(clock.monotonic() - asked))
    while (waits.length < nodes.length) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      await clock.advance(DEADLINE / 5)
    }
    if (asking.size === nodes.length && waits.every((wait) => wait < DEADLINE) && nodes.every(({ state }) => state === 'synced')) return
  }
  throw new Error('The store was never asked')
}
await untilAsking()
// The processes need this time to count each other.
await clock.advance(5_000)
await clock.advance(INTERVAL - (clock.now() % INTERVAL))

const allowedOf: number[] = []
let waited = 0
let longest = 0
const STEP = INTERVAL / OFFERED

function nodeOf(): Throttler {
  let at = random()
  for (const [i, part] of parts.entries()) if ((at -= part) < 0) return nodes[i] as Throttler
  return nodes[0] as Throttler
}

for (let interval = 0; interval < 5; interval++) {
  allowedOf.push(0)
  for (let i = 0; i < OFFERED; i++) {
    if (i === OFFERED / 4) away = interval === 1 || (away && interval !== 3)
    const asked = clock.monotonic()
    void nodeOf()
      .checkAsync('key')
      .then(({ allowed }) => {
        const wait = clock.monotonic() - asked
        longest = Math.max(longest, wait)
        if (wait >= DEADLINE) waited++
        if (allowed) allowedOf[interval] = (allowedOf[interval] ?? 0) + 1
      })
    await clock.advance(STEP)
  }
}
await clock.advance(2 * DEADLINE)
const result: AwayResult = { allowed: allowedOf, waited, longest }
report(result)
process.exit(0)
