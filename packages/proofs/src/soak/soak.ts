import { seeded } from '@weir/bench/random'
import type { Throttler } from '@weir/core'
import { createThrottler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { NodeClock, VirtualTime } from '@weir/testing'
import { type CellName, policyOf, waits } from './cells.ts'
import { type Fault, faultyStore, PERIOD } from './faulty-store.ts'
import { bytesInUse, type Sample, slopeOf } from './heap.ts'
import { SoakLoad } from './load.ts'

/** The parameters of a soak. */
export interface SoakRun {
  readonly cell: CellName
  readonly fault: Fault
  readonly intervals: number
  readonly keys: number
}

/** The result of a soak. */
export interface SoakResult extends SoakRun {
  /** Bytes in use after 50 intervals and at the end, beyond the bytes before the first request. */
  readonly at50: number
  readonly atEnd: number
  /** Bytes by which memory grew in each interval, in the last two thirds of them. */
  readonly slope: number
  readonly flat: boolean
  readonly seconds: number
}

/** Intervals after which memory should no longer grow. */
const SETTLED = 50
/** Samples of a soak, at most. */
const SAMPLES = 60
/** The most bytes by which the line through the last two thirds of the samples may rise for memory to count as flat. */
export const FLAT: number = 512 * 1_024

/** Runs one cell while its store fails. */
export async function soak({ cell, fault, intervals, keys }: SoakRun): Promise<SoakResult> {
  const began = performance.now()
  const time = new VirtualTime()
  const clock = new NodeClock(time)
  const store = faultyStore(fault, clock)
  const throttler = createThrottler({ policies: [policyOf(cell)], store, clock, random: seeded(7), closeTimeout: 0 })
  throttler.on('warning', () => {})
  throttler.on('storeDown', () => {})
  throttler.start()
  // Thousands of requests are rejected in each interval, and writing the stacks of their errors takes longer than everything else.
  Error.stackTraceLimit = 0
  await inspectable(throttler)
  const load = new SoakLoad(throttler as never, clock, waits(cell), keys)
  const before = await bytesInUse()
  // Samples are taken after whole periods of the fault, so that all of them are of the same moment of it.
  const every = PERIOD * Math.ceil(intervals / PERIOD / SAMPLES)
  const samples: Sample[] = []
  let at50 = 0
  for (let interval = 1; interval <= intervals; interval++) {
    await load.interval((milliseconds) => time.runUntil(time.now + milliseconds))
    if (interval === SETTLED) at50 = await bytesInUse()
    if (interval >= intervals / 3 && interval % every === 0) samples.push({ interval, bytes: await bytesInUse() })
  }
  const atEnd = await bytesInUse()
  const slope = slopeOf(samples)
  const rise = slope * ((samples.at(-1)?.interval ?? 0) - (samples[0]?.interval ?? 0))
  clock.stop()
  const seconds = (performance.now() - began) / 1_000
  return { cell, fault, intervals, keys, at50: at50 - before, atEnd: atEnd - before, slope, flat: rise <= FLAT, seconds }
}

/** Waits for code that is loaded with the first policy of its kind, which takes real time. */
async function inspectable(throttler: Throttler<string, never>): Promise<void> {
  await adapterOf(throttler).inspected.coordinator?.loading
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setTimeout(resolve, 1))
}
