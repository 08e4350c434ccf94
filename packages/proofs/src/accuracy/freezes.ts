import { createThrottler } from '@weir/core'
import { adapterOf, createGuard, nodeReader } from '@weir/core/adapter'
import { NodeClock, SeededRandom, SimulatedStore, VirtualTime } from '@weir/testing'
import { atMost, type Figure, type Goal, type GoalCase, percent } from './goal.ts'

const LIMIT = 100
/** Milliseconds. */
const INTERVAL = 10_000
const PROCESSES = 500
/** Milliseconds in which processes start, and learn to count each other, before they are frozen for the first time. */
const BOOT = 4_000
/** Intervals before the measured ones. */
const WARMUP = 2

/** The ways to share a limit, and the most that processes allow beyond it, in percent, by load. */
const FORMS = [
  { name: 'background, sync', coordination: 'background', afterFreeze: 'sync', most: { 2: 3, 10: 5 } },
  { name: 'background, continue', coordination: 'background', afterFreeze: 'continue', most: {} },
  { name: 'periodic', coordination: 'periodic', afterFreeze: 'continue', most: {} },
  { name: 'leased', coordination: 'leased', afterFreeze: 'continue', most: { 2: 0, 10: 0 } },
  { name: 'central', coordination: 'central', afterFreeze: 'continue', most: { 2: 0, 10: 0 } },
] as const
type Form = (typeof FORMS)[number]

/** Processes that a platform freezes right after each response, and continues for their next request. */
export const freezeGoals: readonly Goal[] = [
  {
    id: 'F1',
    title: `${PROCESSES} processes, frozen between their requests, ${LIMIT} per ${INTERVAL / 1_000} s`,
    cases: ({ intervals }) =>
      FORMS.flatMap((form) =>
        ([0.9, 2, 10] as const).map(
          (times): GoalCase => ({
            name: `${form.name}, x${times}`,
            scenarios: [],
            judge: () => [],
            measure: (seed) => frozen(form, times, intervals, seed),
          }),
        ),
      ),
  },
]

interface Process {
  readonly clock: NodeClock
  readonly request: () => Promise<boolean>
}

async function frozen(form: Form, times: 0.9 | 2 | 10, intervals: number, seed: number): Promise<readonly Figure[]> {
  const time = new VirtualTime(-BOOT)
  const random = new SeededRandom(seed)
  const store = new SimulatedStore({ time, random: random.stream('network') })
  let storeDown = 0
  const free: Process[] = []
  for (let i = 0; i < PROCESSES; i++) {
    const own = random.stream(`process ${i}`)
    const clock = new NodeClock(time, { origin: own.next() * 1e6 })
    const policy = { key: 'all', limit: LIMIT, interval: INTERVAL, coordination: form.coordination } as const
    const throttler = createThrottler({ policies: [policy], store, clock, random: () => own.next() })
    throttler.on('storeDown', () => void storeDown++)
    throttler.on('warning', () => {})
    throttler.start()
    // Code of a store's policies is loaded in real time.
    await adapterOf(throttler).inspected.coordinator?.loading
    const guard = createGuard({ throttler, afterFreeze: form.afterFreeze } as never, nodeReader)
    free.push({
      clock,
      request: async () => (await guard.check({ method: 'GET', url: '/', headers: {}, socket: {} } as never))?.allowed === true,
    })
  }
  await store.opened()
  await time.runUntil(0)
  for (const { clock } of free) clock.freeze()
  const allowed: number[] = Array.from({ length: WARMUP + intervals }, () => 0)
  let rejected = 0
  const pick = random.stream('balancing')
  const gap = INTERVAL / (LIMIT * times)
  const all = [...free]
  const handle = (): void => {
    const one = free.splice(pick.below(free.length), 1)[0] as Process
    one.clock.thaw()
    // Timers that are overdue, and messages that have arrived, come first.
    time.at(time.now, () => {
      void one.request().then((passed) => {
        one.clock.freeze()
        free.push(one)
        const interval = Math.floor(time.now / INTERVAL)
        if (!passed) rejected++
        else if (interval < allowed.length) allowed[interval] = (allowed[interval] as number) + 1
      })
      time.touch()
    })
  }
  // The first request of an interval comes half a gap after its start.
  for (let at = gap / 2; at < allowed.length * INTERVAL; at += gap) {
    await time.runUntil(at)
    handle()
  }
  await time.runUntil(allowed.length * INTERVAL + 1_000)
  for (const { clock } of all) clock.stop()
  const most = (form.most as Partial<Record<number, number>>)[times]
  const overshoot = percent(Math.max(...allowed.slice(WARMUP)) / LIMIT - 1)
  return [
    times < 1
      ? atMost('wrong rejections', rejected, 0, 'requests')
      : { name: 'overshoot max', value: Math.max(0, overshoot), unit: '%', ...(most !== undefined && { most }) },
    atMost('storeDown events', storeDown, 0, 'requests'),
  ]
}
