// A process of its own with a throttler for each store; tells its parent what it allowed and rejected in each interval.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Place, storeAt } from '@weir/bench/stores/place'
import { createThrottler, type Throttler } from '@weir/core'
import { snapshot } from '@weir/core/inspect'

export interface Task {
  /** Where the processes meet, by the name of the store. */
  readonly places: Readonly<Record<string, Place>>
  readonly limit: number
  readonly interval: number
  /** Delay before the first request, as a part of the gap between two; from 0 to less than 1. */
  readonly part: number
  /** Requests per interval at this node, by the name of the load. */
  readonly loads: Readonly<Record<string, number>>
  /** Milliseconds since the epoch. */
  readonly from: number
  readonly until: number
}

export interface Count {
  readonly store: string
  readonly load: string
  /** Number of the interval, since the epoch. */
  readonly interval: number
  allowed: number
  rejected: number
  /** Milliseconds that the slowest exchange took. */
  slowest: number
}

/** Requests are sent in batches so far apart: timers of a busy machine come late, and what is due is then sent at once. */
const BATCH = 5
/** Milliseconds. Long, so that a slow exchange is measured and not given up. */
const PATIENT = 10_000
/**
 * If the machine stood still, only the last requests are sent: all come in one turn of the event loop, in which no node can sync.
 */
const MOST_LATE = 25

async function send(task: Task, store: string, throttler: Throttler, load: string, perInterval: number): Promise<readonly Count[]> {
  const { interval, from, until } = task
  const counts = new Map<number, Count>()
  const gap = interval / perInterval
  // Processes that begin together don't send together.
  let next = from + task.part * gap
  for (let now = Date.now(); now < until; now = Date.now()) {
    next = Math.max(next, Math.min(now, until) - MOST_LATE)
    for (; next <= now; next += gap) {
      const number = Math.floor(Date.now() / interval)
      let count = counts.get(number)
      if (count === undefined) counts.set(number, (count = { store, load, interval: number, allowed: 0, rejected: 0, slowest: 0 }))
      if (throttler.check(load).allowed) count.allowed++
      else count.rejected++
    }
    const running = counts.get(Math.floor(now / interval))
    if (running !== undefined) running.slowest = Math.max(running.slowest, snapshot(throttler).sync.lastDurationMs)
    await sleep(BATCH)
  }
  return [...counts.values()]
}

async function meetAt(task: Task, name: string, place: Place): Promise<readonly Count[]> {
  const { limit, interval, loads } = task
  const throttler = createThrottler({ policies: [{ limit, interval }], store: await storeAt(place, PATIENT) }).start()
  const sent = Object.entries(loads).map(([load, perInterval]) => send(task, name, throttler, load, perInterval))
  const counts = await Promise.all(sent)
  await throttler.close()
  return counts.flat()
}

process.once('message', (task: Task) => {
  Promise.all(Object.entries(task.places).map(([name, place]) => meetAt(task, name, place))).then((counts) => {
    process.send?.(counts.flat(), () => process.disconnect())
  })
})
process.once('disconnect', () => process.exit())
process.send?.('ready')
