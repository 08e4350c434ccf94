/** Uniform in [0, 1), the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/**
 * Draws `count` numbers of 0 … `size` - 1, the k-th with a weight of 1/(k+1)^`exponent`. Places are shuffled, so that frequent
 * numbers are not neighbours.
 */
export function zipf(size: number, exponent: number, count: number, seed = 1): Uint32Array {
  const random = seeded(seed)
  const cumulated = new Float64Array(size)
  let sum = 0
  for (let i = 0; i < size; i++) cumulated[i] = sum += 1 / (i + 1) ** exponent
  const places = Uint32Array.from({ length: size }, (_, i) => i)
  for (let i = size - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1))
    const kept = places[i] as number
    places[i] = places[other] as number
    places[other] = kept
  }
  const draws = new Uint32Array(count)
  for (let i = 0; i < count; i++) {
    const wanted = random() * sum
    let low = 0
    let high = size - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if ((cumulated[middle] as number) < wanted) low = middle + 1
      else high = middle
    }
    draws[i] = places[low] as number
  }
  return draws
}
