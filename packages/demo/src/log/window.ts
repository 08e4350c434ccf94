import { UsageError } from '../errors.ts'
import { type LogReport, readLog } from './reader.ts'
import type { LogRecord } from './record.ts'

/** The busiest part of a log. It begins and ends with an interval, so that every interval is complete. */
export interface LogWindow {
  /** Milliseconds since the epoch. */
  readonly from: number
  /** Exclusive. */
  readonly to: number
  /** Sorted by time. Records of one second keep the order of the log. */
  readonly records: readonly LogRecord[]
  readonly report: LogReport
}

/**
 * Finds and reads the busiest part of `length` milliseconds. Reads the file twice, so that only the records of that part are kept in
 * memory.
 */
export async function busiestWindow(file: string, length: number, interval: number): Promise<LogWindow> {
  const counts = new Map<number, number>()
  const report = await readLog(file, ({ time }) => {
    const ordinal = Math.floor(time / interval)
    counts.set(ordinal, (counts.get(ordinal) ?? 0) + 1)
  })
  const first = busiestStart(counts, Math.max(1, Math.ceil(length / interval)))
  if (first === undefined)
    throw new UsageError(
      `the log ${JSON.stringify(file)} contains no record (${report.lines} lines, none in Common or Combined Log Format)`,
    )
  const from = first * interval
  const to = from + Math.max(1, Math.ceil(length / interval)) * interval
  const records: LogRecord[] = []
  await readLog(file, (record) => {
    if (record.time >= from && record.time < to) records.push(record)
  })
  records.sort((a, b) => a.time - b.time)
  return { from, to, records, report }
}

/** The first of the `width` consecutive ordinals with the highest sum. If several sums are equal, the earliest. */
export function busiestStart(counts: ReadonlyMap<number, number>, width: number): number | undefined {
  const ordinals = [...counts.keys()].sort((a, b) => a - b)
  let best: number | undefined
  let most = 0
  let sum = 0
  let last = 0
  // The busiest part can always be moved right until it begins with an ordinal that has records.
  for (let first = 0; first < ordinals.length; first++) {
    const start = ordinals[first] as number
    while (last < ordinals.length && (ordinals[last] as number) < start + width) sum += counts.get(ordinals[last++] as number) ?? 0
    if (sum > most) [most, best] = [sum, start]
    sum -= counts.get(start) ?? 0
  }
  return best
}
