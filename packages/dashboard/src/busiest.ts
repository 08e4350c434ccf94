import type { TopKey } from './protocol.ts'

/** Milliseconds of one part of the memory, and the number of parts: half an hour. */
const PART = 5 * 60_000
const PARTS = 6
/** Keys of one policy that are remembered, and that a view shows. */
const KEPT = 200
const SHOWN = 50

/** The highest use of each of the busiest keys in the last half hour, while a dashboard was open. It shows the effect of other limits. */
export class Busiest {
  /** By policy and key: the most units in each part, oldest first. */
  readonly #peaks = new Map<string, Map<string, [part: number, used: number][]>>()

  /** Adds the most used keys at a time in milliseconds since the Unix epoch. */
  add(top: readonly TopKey[], time: number): void {
    const part = Math.floor(time / PART)
    for (const { policy, key, used: known, debt } of top) {
      let keys = this.#peaks.get(policy)
      if (keys === undefined) this.#peaks.set(policy, (keys = new Map()))
      const used = known + debt
      const parts = keys.get(key)
      const newest = parts?.at(-1)
      if (parts === undefined) keys.set(key, [[part, used]])
      else if (newest?.[0] === part) newest[1] = Math.max(newest[1], used)
      else parts.push([part, used])
    }
    for (const [policy, keys] of this.#peaks) {
      for (const [key, parts] of keys) {
        while (parts.length > 0 && (parts[0] as [number, number])[0] <= part - PARTS) parts.shift()
        if (parts.length === 0) keys.delete(key)
      }
      if (keys.size > KEPT) {
        const least = [...keys].sort(([, a], [, b]) => peakOf(a) - peakOf(b)).slice(0, keys.size - KEPT)
        for (const [key] of least) keys.delete(key)
      }
      if (keys.size === 0) this.#peaks.delete(policy)
    }
  }

  /** Most units first. */
  of(policy: string): number[] {
    return [...(this.#peaks.get(policy)?.values() ?? [])]
      .map(peakOf)
      .sort((a, b) => b - a)
      .slice(0, SHOWN)
  }
}

function peakOf(parts: readonly (readonly [part: number, used: number])[]): number {
  return Math.max(...parts.map(([, used]) => used))
}
