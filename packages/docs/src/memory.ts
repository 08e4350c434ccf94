import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createThrottler, type PolicyOptions, type Store, type SyncRequest } from '@weir/core'
import { manualClock } from '@weir/testing'

const KEYS = 50_000

/** Agrees to everything and keeps nothing, so that only the node's own memory is measured. */
const agreeing: Store = {
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
}

/** Bytes that a node holds for each key, the key's string not included, after it took so many units of each. */
export async function bytesPerKey(policy: PolicyOptions, units: number): Promise<number> {
  const clock = manualClock()
  const keys = Array.from({ length: KEYS }, (_, index) => Buffer.from(`user-${`${index}`.padStart(10, '0')}`).toString('latin1'))
  const throttler = createThrottler({ policies: [policy], store: agreeing, clock, maxKeys: KEYS })
  throttler.start()
  await clock.advance(100)
  const before = memory()
  for (const key of keys) throttler.check(key, units)
  for (let round = 0; round < 10; round++) await clock.advance(200)
  const bytes = (memory() - before) / KEYS
  // Virtual time stands still from here on, so nobody waits for the end.
  void throttler.close()
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
