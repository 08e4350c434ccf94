import { createThrottler, type PolicyOptions, type Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { connectToHub, Hub } from '@weir/core/memory'
import { backgroundStore } from '@weir/core/sync'
import { manualClock } from '@weir/testing'
import { input, report } from '../harness/child.ts'
import { seeded, zipf } from '../harness/random.ts'

export interface WorkloadInput {
  readonly workload: 'half of the limit' | 'long tail' | 'case study' | 'case study, few heavy users'
}

export interface WorkloadResult {
  readonly requests: number
  readonly allowed: number
  /** The number of key writes. */
  readonly keyWrites: number
  /** Script calls, heartbeats included. */
  readonly calls: number
  /** Operations that one central counter for each level would have cost. */
  readonly central: number
}

interface Workload {
  readonly nodes: number
  readonly seconds: number
  readonly perSecond: number
  readonly policies: readonly PolicyOptions[]
  /** The keys of request `i`, one for each policy. Undefined for a policy that does not apply. */
  keys(i: number): readonly (string | undefined)[]
}

const random = seeded(7)
const users = zipf(100_000, 1, 1 << 20)
const user = (i: number) => `user:${users[i & ((1 << 20) - 1)]}`

const CASE_STUDY = {
  nodes: 12,
  seconds: 60,
  perSecond: 5000,
  policies: [
    { name: 'global', key: 'all', limit: 300_000, interval: '1m' },
    { name: 'user', limit: 600, interval: '1m' },
    { name: 'expensive', limit: 20, interval: '1m' },
  ],
} as const

const WORKLOADS: Readonly<Record<WorkloadInput['workload'], Workload>> = {
  'half of the limit': {
    nodes: 3,
    seconds: 60,
    perSecond: 100_000 / 60,
    policies: [{ limit: 4000, interval: '1m' }],
    keys: () => [`user:${Math.floor(random() * 50)}`],
  },
  'long tail': {
    nodes: 12,
    seconds: 60,
    perSecond: 10_000,
    policies: [{ limit: 600, interval: '1m' }],
    keys: (i) => [user(i)],
  },
  'case study': {
    ...CASE_STUDY,
    // Ten thousand users send the same number of requests. One request in a hundred goes to an expensive endpoint.
    keys: (i) => {
      const key = `user:${Math.floor(random() * 10_000)}`
      return ['all', key, i % 100 === 0 ? key : undefined]
    },
  },
  'case study, few heavy users': { ...CASE_STUDY, keys: (i) => ['all', user(i), i % 100 === 0 ? user(i) : undefined] },
}

/** Keys and blocks of one script call of `@weir/redis`. A heartbeat is a separate call. */
const KEYS_A_CALL = 40

const { nodes, seconds, perSecond, policies, keys } = WORKLOADS[input<WorkloadInput>().workload]
const clock = manualClock()
const hub = new Hub(clock)
let keyWrites = 0
let calls = 0
let counting = false
const store = backgroundStore({
  kind: 'counted',
  open(node) {
    const connection = connectToHub(hub, node)
    return {
      sync(request) {
        if (counting) {
          calls += Math.ceil((request.entries.length + request.blocks.length) / KEYS_A_CALL) + (request.heartbeat === undefined ? 0 : 1)
          keyWrites += request.entries.length
        }
        return connection.sync(request)
      },
      close: () => connection.close(),
    }
  },
})
const throttlers: Throttler[] = Array.from({ length: nodes }, () => createThrottler({ policies, store, clock, random, maxKeys: 500_000 }))
for (const one of throttlers) one.start()
// The processes need this time to count each other. Then the clock moves to the start of an interval.
await clock.advance(3000)
await clock.advance(60_000 - (clock.now() % 60_000))

counting = true
const requests = Math.round(seconds * perSecond)
const costs = policies.map(() => 1)
let allowed = 0
let central = 0
const step = 1
let made = 0
for (let at = 0; at < seconds * 1000; at += step) {
  await clock.advance(step)
  for (const until = Math.round(((at + step) / 1000) * perSecond); made < until; made++) {
    const list = keys(made)
    for (const key of list) if (key !== undefined) central++
    if (adapterOf(throttlers[Math.floor(random() * nodes)] as Throttler).decide(list, costs).allowed) allowed++
  }
}
// The counts of the last span are sent in the next interval.
await clock.advance(10_000)
if (made !== requests) throw new Error(`${made} requests instead of ${requests}`)
const result: WorkloadResult = { requests, allowed, keyWrites, calls, central }
report(result)
process.exit(0)
