import { pathToFileURL } from 'node:url'
import type * as Core from '@weir/core'
import { input, report } from '../harness/child.ts'

/** Decisions of one process without a store. */
export interface LocalInput {
  /** The built entry of `@weir/core`, of this checkout or another one. */
  readonly core: string
  readonly keys: number
  readonly levels: 1 | 3
  readonly outcome: 'allow' | 'reject'
  readonly decisions: number
}

export interface LocalResult {
  /** Bytes of memory for each key, its string included. Only with `--expose-gc`. */
  readonly bytesPerKey: number
}

/** Decisions between two additions to the result. */
const SLICE = 10_000
const MOST = 1e12

const { core, keys, levels, outcome, decisions } = input<LocalInput>()
const { createThrottler } = (await import(pathToFileURL(core).href)) as typeof Core
const limit = outcome === 'allow' ? MOST : 1
const throttler = createThrottler({
  policies:
    levels === 1
      ? [{ limit, interval: '1h' }]
      : [
          { name: 'global', key: 'all', limit: MOST, interval: '1h' },
          { name: 'user', limit, interval: '1h' },
          { name: 'day', limit: MOST, interval: '1d' },
        ],
  maxKeys: 2_000_000,
})
const before = used()
// Each key is counted once before the measurement. If requests are to be rejected, this uses up its only unit.
for (let id = 0; id < keys; id++) throttler.check(`user:${id}`)
const bytesPerKey = (used() - before) / keys
const names = Array.from({ length: keys }, (_, id) => `user:${id}`)

let seed = 1
let allowed = 0
for (let left = decisions; left > 0; left -= SLICE) allowed += decide(Math.min(left, SLICE))
if (allowed !== (outcome === 'allow' ? decisions : 0)) throw new Error(`${allowed} of ${decisions} were allowed`)
report({ bytesPerKey } satisfies LocalResult)
process.exit(0)

function decide(count: number): number {
  let passed = 0
  for (let i = 0; i < count; i++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    if (throttler.check(names[(seed >>> 8) % keys] as string).allowed) passed++
  }
  return passed
}

function used(): number {
  const { gc } = globalThis as { gc?: () => void }
  gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
