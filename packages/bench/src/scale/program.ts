import { createThrottler, type Throttler } from '@weir/core'
import { connectToHub, Hub } from '@weir/core/memory'
import { backgroundStore } from '@weir/core/sync'
import { manualClock } from '@weir/testing'
import { input, report } from '../harness/child.ts'
import { timed } from '../harness/measure.ts'
import { seeded } from '../harness/random.ts'

export interface ScaleInput {
  readonly dimension: 'keys' | 'nodes' | 'policies' | 'spans'
  readonly size: number
}

export interface ScaleResult {
  /** CPU nanoseconds for one decision. */
  readonly decision: number
  /** Key writes and syncs of one process in one interval (10 s), heartbeats included. */
  readonly keyWrites: number
  readonly exchanges: number
}

const { dimension, size } = input<ScaleInput>()
const sizes = { keys: 1000, nodes: 3, policies: 1, spans: 6, [dimension]: size }
const random = seeded(3)
const clock = manualClock()
const hub = new Hub(clock)
let keyWrites = 0
let exchanges = 0
const store = backgroundStore({
  kind: 'counted',
  open(node) {
    const connection = connectToHub(hub, node)
    return {
      sync(request) {
        exchanges++
        keyWrites += request.entries.length
        return connection.sync(request)
      },
      close: () => connection.close(),
    }
  },
})
const interval = 10_000
const policies = Array.from({ length: sizes.policies }, (_, place) => ({ name: `p${place}`, limit: 1200, interval, spans: sizes.spans }))
const throttlers: Throttler[] = Array.from({ length: sizes.nodes }, () =>
  createThrottler({ policies, store, clock, random, maxKeys: 2_000_000 }),
)
for (const one of throttlers) one.start()
await clock.advance(3000)
await clock.advance(interval - (clock.now() % interval))
const keys = Array.from({ length: sizes.keys }, (_, id) => `user:${id}`)
// All keys get half of the limit, spread over the interval and all processes, but at most a million requests in all.
const perKey = Math.max(1, Math.min(600, Math.floor(1_000_000 / (sizes.keys * sizes.policies))))
keyWrites = 0
exchanges = 0
let cpu = 0
let decisions = 0
for (let turn = 0; turn < 100; turn++) {
  await clock.advance(interval / 100)
  const count = Math.floor((perKey * sizes.keys * (turn + 1)) / 100) - decisions
  const chosen = Array.from({ length: count }, () => keys[Math.floor(random() * keys.length)] as string)
  cpu += timed(() => {
    for (let i = 0; i < count; i++) (throttlers[i % sizes.nodes] as Throttler).check(chosen[i] as string)
  }).cpu
  decisions += count
}
const result: ScaleResult = { decision: (cpu * 1e6) / decisions, keyWrites: keyWrites / sizes.nodes, exchanges: exchanges / sizes.nodes }
report(result)
process.exit(0)
