import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createThrottler, type PolicyOptions, type Throttler } from '@weir/core'
import type { SyncRequest } from '@weir/core/sync'
import { backgroundStore } from '@weir/core/sync'
import { type ManualClock, manualClock } from '@weir/testing'

const KEYS = 50_000
/** Fewer keys, for algorithms whose keys use much more memory. */
const BUSY_KEYS = 10_000

/** A store that accepts all counts and keeps nothing, so that only the process's own memory is measured. */
const agreeing = backgroundStore({
  kind: 'none',
  open: ({ clock }) => ({
    sync: ({ entries, blocks, heartbeat }: SyncRequest) =>
      Promise.resolve({
        time: clock.now(),
        results: entries.map(({ cells }) => ({ cells, blocked: 0, granted: true })),
        blocks: blocks.map(({ remaining }) => remaining),
        ...(heartbeat && { heartbeat: { nodes: 3, generation: '1', cursor: '1', blocks: [], hot: [] } }),
      }),
    close: () => Promise.resolve(),
  }),
})

/** Bytes that a process needs for each key after `units` units of each, with its copy of the key. */
export function bytesPerKey(policy: PolicyOptions, units: number): Promise<number> {
  return bytesHeld(policy, KEYS, async (throttler, keys, clock) => {
    for (const key of keys) throttler.check(key, units)
    for (let round = 0; round < 10; round++) await clock.advance(200)
  })
}

/** The same for keys that are used all the time, in every part of a sliding window. */
export function bytesPerBusyKey(policy: PolicyOptions & { readonly limit: number; readonly interval: number }): Promise<number> {
  return bytesHeld(policy, BUSY_KEYS, async (throttler, keys, clock) => {
    for (let bucket = 0; bucket <= 30; bucket++) {
      for (const key of keys) throttler.check(key, policy.limit / 40)
      await clock.advance(policy.interval / 30)
    }
  })
}

async function bytesHeld(
  policy: PolicyOptions,
  count: number,
  use: (throttler: Throttler, keys: readonly string[], clock: ManualClock) => Promise<void>,
): Promise<number> {
  const clock = manualClock()
  const keys = Array.from({ length: count }, (_, index) => Buffer.from(`user-${`${index}`.padStart(10, '0')}`).toString('latin1'))
  const throttler = createThrottler({ policies: [policy], store: agreeing, clock, maxKeys: count })
  throttler.start()
  await clock.advance(100)
  const before = memory()
  await use(throttler, keys, clock)
  const bytes = (memory() - before) / count
  // Closes the throttler, so that the next measurement does not include its memory.
  const closing = throttler.close()
  await clock.advance(10_000)
  await closing
  return bytes
}

function memory(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
