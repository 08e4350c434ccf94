// A process of its own with a throttler for each load; tells its parent what it admitted and refused in each interval.
import { setTimeout as sleep } from 'node:timers/promises'
import { createThrottler } from '@weir/core'
import { redisStore } from '@weir/redis'

export interface Task {
  readonly url: string
  readonly limit: number
  readonly interval: number
  /** Requests per interval at this node, by the name of the load. */
  readonly loads: Readonly<Record<string, number>>
  /** Milliseconds since the epoch. */
  readonly from: number
  readonly until: number
}

export interface Count {
  readonly load: string
  /** Number of the interval, since the epoch. */
  readonly interval: number
  admitted: number
  refused: number
}

/** Requests are sent in batches so far apart: timers of a busy machine come late, and what is due is then sent at once. */
const BATCH = 5
/**
 * Of what a machine that stood still would have had to send, only the last part: it comes in one turn of the event loop, in
 * which no node can hear of the others.
 */
const MOST_LATE = 25

async function send(task: Task, load: string, perInterval: number): Promise<readonly Count[]> {
  const { limit, interval, from, until } = task
  const store = redisStore(task.url, { namespace: load })
  const throttler = createThrottler({ policies: [{ limit, interval }], store })
  throttler.start()
  const counts = new Map<number, Count>()
  const gap = interval / perInterval
  let next = from + Math.random() * gap
  for (let now = Date.now(); now < until; now = Date.now()) {
    next = Math.max(next, Math.min(now, until) - MOST_LATE)
    for (; next <= now; next += gap) {
      const number = Math.floor(Date.now() / interval)
      let count = counts.get(number)
      if (count === undefined) counts.set(number, (count = { load, interval: number, admitted: 0, refused: 0 }))
      if (throttler.check('everybody').allowed) count.admitted++
      else count.refused++
    }
    await sleep(BATCH)
  }
  await throttler.close()
  return [...counts.values()]
}

process.once('message', (task: Task) => {
  Promise.all(Object.entries(task.loads).map(([load, perInterval]) => send(task, load, perInterval))).then((counts) => {
    process.send?.(counts.flat(), () => process.disconnect())
  })
})
process.once('disconnect', () => process.exit())
process.send?.('ready')
