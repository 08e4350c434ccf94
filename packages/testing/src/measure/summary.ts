/** A sample in a few numbers. All are 0 if the sample is empty. */
export interface Summary {
  readonly count: number
  readonly mean: number
  /** The smallest value that at least 95 % of the sample don't exceed. */
  readonly p95: number
  readonly max: number
}

/** Mean, 95th percentile (nearest rank) and maximum of a sample. */
export function summarize(values: readonly number[]): Summary {
  const count = values.length
  if (count === 0) return { count, mean: 0, p95: 0, max: 0 }
  const sorted = [...values].sort((one, other) => one - other)
  return {
    count,
    mean: sorted.reduce((sum, value) => sum + value, 0) / count,
    p95: sorted[Math.ceil(count * 0.95) - 1] as number,
    max: sorted[count - 1] as number,
  }
}
