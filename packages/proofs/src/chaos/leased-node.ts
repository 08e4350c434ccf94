import { openSync, writeSync } from 'node:fs'
import { seeded } from '@weir/bench/random'
import { createThrottler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { redisStore } from '@weir/redis'

/** The settings of a process that uses leases and will be killed. */
export interface Leased {
  readonly port: number
  readonly namespace: string
  readonly limit: number
  /** The interval, in milliseconds. */
  readonly interval: number
  /** Requests per second of this process. */
  readonly rate: number
  readonly seed: number
  /** The file to which the process writes each allowed request before anything else. Its content survives when the process is killed. */
  readonly witness: string
}

/** Milliseconds between two checks for due requests. */
const PACE = 2

const { port, namespace, limit, interval, rate, seed, witness } = JSON.parse(process.argv[2] ?? '') as Leased
const random = seeded(seed)
const file = openSync(witness, 'a')
const throttler = createThrottler({
  policies: [{ limit, interval, coordination: 'leased', failMode: 'closed' }],
  store: redisStore({ port }, { namespace }),
})
throttler.on('storeDown', () => {})
throttler.on('warning', () => {})
throttler.start()

/** Writes a line for each unit: the two moments of the wall clock between which it was taken. */
function testify(asked: number, allowed: boolean): void {
  if (allowed) writeSync(file, `${asked} ${Date.now()}\n`)
}

let due = performance.now()
setInterval(() => {
  const now = performance.now()
  // After a pause of this process the load continues without catching up in one burst.
  if (now - due > 200) due = now
  for (; due <= now; due += (-Math.log(1 - random()) * 1000) / rate) {
    const asked = Date.now()
    const decision = adapterOf(throttler).decideAsync(['key'], [1])
    if (decision instanceof Promise) void decision.then(({ allowed }) => testify(asked, allowed))
    else testify(asked, decision.allowed)
  }
}, PACE)
process.on('disconnect', () => process.exit(0))
