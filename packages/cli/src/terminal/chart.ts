const LEVELS = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const

/**
 * A line of bars, one for each part, in at most `width` characters: of more parts, some become one bar. Nothing is a blank; anything is
 * at least the lowest bar.
 *
 * @param most what the highest bar stands for
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

/** Sums of neighbours, so that there are at most so many. */
export function gathered(values: readonly number[], width: number): readonly number[] {
  const together = Math.max(1, Math.ceil(values.length / width))
  const sums: number[] = []
  for (const [at, value] of values.entries()) {
    const place = Math.floor(at / together)
    sums[place] = (sums[place] ?? 0) + value
  }
  return sums
}
