import { seeded } from '@weir/bench/random'
import { createThrottler } from '@weir/core'
import { redisStore } from '@weir/redis'

/** The settings of a process that sends requests to itself. */
export interface Busy {
  readonly port: number
  readonly namespace: string
  readonly limit: number
  /** The interval, in milliseconds. */
  readonly interval: number
  /** Requests per second of this process. */
  readonly rate: number
  readonly cost: readonly [least: number, most: number]
  readonly seed: number
  readonly expectedProcesses: number
}

/** Units that were allowed, at a time of the wall clock. */
export interface Allowed {
  readonly at: number
  readonly units: number
}

/** Milliseconds between two checks for due requests. */
const PACE = 2

// A process that checks one key at random moments with a steady rate, and reports each unit that it allows.
const { port, namespace, limit, interval, rate, cost, seed, expectedProcesses } = JSON.parse(process.argv[2] ?? '') as Busy
const random = seeded(seed)
const throttler = createThrottler({ policies: [{ limit, interval }], store: redisStore({ port }, { namespace }), expectedProcesses })
throttler.on('storeDown', () => {})
throttler.start()

let due = performance.now()
setInterval(() => {
  const now = performance.now()
  // After a pause of this process the load continues without catching up in one burst.
  if (now - due > 200) due = now
  for (; due <= now; due += (-Math.log(1 - random()) * 1000) / rate) {
    const units = cost[0] + Math.floor(random() * (cost[1] - cost[0] + 1))
    if (throttler.check('key', units).allowed) process.send?.({ at: Date.now(), units } satisfies Allowed, () => {})
  }
}, PACE)
process.on('disconnect', () => process.exit(0))
