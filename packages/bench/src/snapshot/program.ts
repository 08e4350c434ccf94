import { createThrottler, fixedWindow, slidingWindow } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { input, report } from '../harness/child.ts'
import { timed } from '../harness/measure.ts'

export interface SnapshotInput {
  readonly window: 'fixed' | 'sliding'
  readonly keys: number
  /** The number of blocked keys among them. */
  readonly blocked: number
  /** Whether each key is rejected between two snapshots. */
  readonly rejected?: boolean
  /** The number of snapshots, one after the other. */
  readonly calls: number
}

/** Milliseconds of CPU for each call, in order. */
export interface SnapshotResult {
  readonly cpu: readonly number[]
  /** The number of the ten most used keys that the last snapshot lists. */
  readonly found: number
}

const { window, keys, blocked, rejected = false, calls } = input<SnapshotInput>()
const throttler = createThrottler({
  policies: [{ name: 'user', limit: 1_000, interval: '1h', algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() }],
  maxKeys: keys + 1,
})
for (let id = 0; id < keys; id++) throttler.check(`user:${id}`)
for (let id = 0; id < blocked; id++) throttler.block(`user:${id * 7}`, '1h')
const hottest = Array.from({ length: 10 }, (_, i) => `user:${Math.floor(((i + 0.5) * keys) / 10)}`)
for (const [i, key] of hottest.entries()) for (let taken = 0; taken < 500 + i; taken++) throttler.check(key)

const cpu: number[] = []
let top: readonly { readonly key: string }[] = []
for (let call = 0; call < calls; call++) {
  // A cost above the limit is rejected, and leaves the counts as they are.
  if (rejected) for (let id = 0; id < keys; id++) throttler.check(`user:${id}`, 1_001)
  const time = timed(() => {
    top = snapshot(throttler).top
  })
  cpu.push(time.cpu)
  // Snapshots are usually taken now and then, so the next one comes in a later turn.
  await new Promise((resolve) => setTimeout(resolve, 5))
}
const names = new Set(top.map(({ key }) => key))
const result: SnapshotResult = { cpu, found: hottest.filter((key) => names.has(key)).length }
report(result)
process.exit(0)
