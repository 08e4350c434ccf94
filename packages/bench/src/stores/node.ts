import { createThrottler } from '@weir/core'
import { input, report } from '../harness/child.ts'
import { seeded } from '../harness/random.ts'
import { type Place, storeAt } from './place.ts'

/** One of several processes that get random requests for one key. */
export interface NodeInput {
  readonly place: Place
  readonly limit: number
  /** The interval, in milliseconds. */
  readonly interval: number
  /** Requests per second of this process. */
  readonly rate: number
  /** The start and the end, by the wall clock. */
  readonly from: number
  readonly until: number
  readonly seed: number
}

export interface NodeResult {
  /** Requests that were allowed in each interval from `from` on. */
  readonly allowed: readonly number[]
  /** The times at which it lost the store and at which the store came back, in milliseconds after `from`. */
  readonly storeDown: readonly number[]
  readonly storeUp: readonly number[]
  /** The longest duration of a decision, in milliseconds. */
  readonly longest: number
  /** Decisions that threw. */
  readonly failed: number
}

/** Milliseconds between two checks for due requests. */
const PACE = 1

const { place, limit, interval, rate, from, until, seed } = input<NodeInput>()
const random = seeded(seed)
const throttler = createThrottler({ policies: [{ limit, interval }], store: await storeAt(place) })
const storeDown: number[] = []
const storeUp: number[] = []
throttler.on('storeDown', () => void storeDown.push(Date.now() - from))
throttler.on('storeUp', () => void storeUp.push(Date.now() - from))
throttler.on('warning', () => {})
throttler.start()

const allowed: number[] = []
let longest = 0
let failed = 0
await new Promise((resolve) => setTimeout(resolve, from - Date.now()))
let due = Date.now()
const timer = setInterval(() => {
  const now = Date.now()
  for (; due <= now && due < until; due += (-Math.log(1 - random()) * 1_000) / rate) {
    const began = performance.now()
    try {
      if (throttler.check('key').allowed) {
        const at = Math.floor((Date.now() - from) / interval)
        allowed[at] = (allowed[at] ?? 0) + 1
      }
    } catch {
      failed++
    }
    longest = Math.max(longest, performance.now() - began)
  }
  if (now < until) return
  clearInterval(timer)
  report({ allowed: Array.from(allowed, (units) => units ?? 0), storeDown, storeUp, longest, failed } satisfies NodeResult)
  process.exit(0)
}, PACE)
