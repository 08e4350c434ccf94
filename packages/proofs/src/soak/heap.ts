import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes that are still in use after a full collection, including bytes outside V8's heap. */
export async function bytesInUse(): Promise<number> {
  // Weak references that were read in a turn last until its end.
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Memory in use after a number of intervals. */
export interface Sample {
  readonly interval: number
  readonly bytes: number
}

/** Bytes by which memory grows in each interval: the slope of a line by least squares. */
export function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: (sample: Sample) => number) => samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length
  const interval = mean((sample) => sample.interval)
  const bytes = mean((sample) => sample.bytes)
  let both = 0
  let square = 0
  for (const sample of samples) {
    both += (sample.interval - interval) * (sample.bytes - bytes)
    square += (sample.interval - interval) ** 2
  }
  return square === 0 ? 0 : both / square
}
