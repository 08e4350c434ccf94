import { openSync, writeSync } from 'node:fs'
import { seeded } from '@weir/bench/random'
import { concurrency, createThrottler } from '@weir/core'
import { redisStore } from '@weir/redis'

/** The settings of a process whose requests use slots of the cluster, and that will be killed. */
export interface Holding {
  readonly port: number
  readonly namespace: string
  readonly limit: number
  /** The interval between heartbeats, in milliseconds. */
  readonly heartbeat: number
  /** Requests that the process sends at a time. */
  readonly workers: number
  /** The longest duration of a request, in milliseconds. */
  readonly longest: number
  readonly seed: number
  /** The file to which the process writes each start and end while the slot is in use. Its content survives when the process is killed. */
  readonly witness: string
}

const { port, namespace, limit, heartbeat, workers, longest, seed, witness } = JSON.parse(process.argv[2] ?? '') as Holding
const random = seeded(seed)
const file = openSync(witness, 'a')
const throttler = createThrottler({
  policies: [{ limit, algorithm: concurrency(), coordination: 'leased', failMode: 'closed', storeTimeout: '1s' }],
  store: redisStore({ port }, { namespace }),
  heartbeat,
})
throttler.on('storeDown', () => {})
throttler.on('warning', () => {})
throttler.start()

let requests = 0

/** Writes a line with the machine's clock, which all processes share. */
function testify(what: 'begin' | 'end', id: number): void {
  writeSync(file, `${what} ${process.pid} ${id} ${process.hrtime.bigint()}\n`)
}

function pause(most: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, random() * most))
}

async function work(): Promise<void> {
  for (;;) {
    const decision = await throttler.checkAsync('key')
    if (decision.allowed) {
      const id = ++requests
      testify('begin', id)
      await pause(longest)
      testify('end', id)
      throttler.release(decision)
    }
    await pause(longest / 2)
  }
}

for (let i = 0; i < workers; i++) void work()
process.on('disconnect', () => process.exit(0))
