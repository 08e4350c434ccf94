const LEVELS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const

/**
 * A line of bars, at most `width` characters wide. If there are more values, neighbours share a bar. Zero is a blank, and every other
 * value is at least the lowest bar.
 *
 * @param most the value of the highest bar
 */
export function bars(values: readonly number[], width: number, most: number): string {
  return gathered(values, width)
    .map((value) => {
      if (value <= 0 || most <= 0) return ' '
      const level = Math.min(LEVELS.length - 1, Math.floor((value / most) * LEVELS.length))
      return LEVELS[level] ?? ' '
    })
    .join('')
}

/** Sums of neighbours, at most `width` of them. */
export function gathered(values: readonly number[], width: number): readonly number[] {
  const together = Math.max(1, Math.ceil(values.length / width))
  const sums: number[] = []
  for (const [at, value] of values.entries()) {
    const place = Math.floor(at / together)
    sums[place] = (sums[place] ?? 0) + value
  }
  return sums
}
