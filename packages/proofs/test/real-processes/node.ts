// A separate process with a throttler for each store. It reports the allowed and rejected requests of each interval to its parent.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Place, storeAt } from '@weir/bench/stores/place'
import { createThrottler, type Throttler } from '@weir/core'
import { snapshot } from '@weir/core/inspect'

export interface Task {
  /** The meeting places of the processes, by the name of the store. */
  readonly places: Readonly<Record<string, Place>>
  readonly limit: number
  readonly interval: number
  /** The delay before the first request, as a part of the gap between two requests: from 0 to less than 1. */
  readonly part: number
  /** Requests per interval in this process, by the name of the load. */
  readonly loads: Readonly<Record<string, number>>
  /** Milliseconds since the Unix epoch. */
  readonly from: number
  readonly until: number
}

export interface Count {
  readonly store: string
  readonly load: string
  /** Number of the interval, since the Unix epoch. */
  readonly interval: number
  allowed: number
  rejected: number
  /** The duration of the slowest sync, in milliseconds. */
  slowest: number
}

/** Milliseconds between two batches of requests. Timers of a busy machine are late, and a batch then contains all due requests. */
const BATCH = 5
/** The store's timeout, in milliseconds. It is long, so that a slow sync is measured and does not fail. */
const PATIENT = 10_000
/**
 * The most milliseconds of late requests that are sent. After a pause of the machine they all come in one turn of the event loop,
 * in which no process can sync.
 */
const MOST_LATE = 25

async function send(task: Task, store: string, throttler: Throttler, load: string, perInterval: number): Promise<readonly Count[]> {
  const { interval, from, until } = task
  const counts = new Map<number, Count>()
  const gap = interval / perInterval
  // Processes that start together send at different times.
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
