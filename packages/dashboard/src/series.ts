import type { ClusterNode } from '@weir/core/inspect'
import type { KeyMemory } from './key-memory.ts'
import { type LimitedKeys, STEP } from './limited.ts'
import type { Series, View } from './protocol.ts'

type SeriesPoint = Series['points'][number]

/** Milliseconds that are kept, and the most policies. */
const KEPT = 30 * 60_000
const MOST = 200

/** The rates of each policy in the last half hour, while a dashboard was open. */
export class PolicySeries {
  readonly #points = new Map<string, SeriesPoint[]>()
  #at = Number.NEGATIVE_INFINITY

  /** Adds a point every five seconds. */
  add({ time, policies, point }: View): void {
    if (time - this.#at < STEP) return
    this.#at = time
    for (const { name, allowedRate, rejectedRate } of policies) {
      const points = this.#points.get(name) ?? []
      if (points.length === 0 && this.#points.size >= MOST) continue
      points.push(point[1] === null ? [time, null, null] : [time, allowedRate, rejectedRate])
      this.#points.set(name, points)
    }
    for (const [name, points] of this.#points) {
      while (points.length > 0 && (points[0] as SeriesPoint)[0] < time - KEPT) points.shift()
      if (points.length === 0) this.#points.delete(name)
    }
  }

  of(policy: string): Series {
    return { points: this.#points.get(policy) ?? [] }
  }
}

/** The requests of one process, from its own history. */
export function nodeSeries(nodes: readonly ClusterNode[], node: string, time: number): Series {
  const found = nodes.find((one) => one.node === node)
  if (found === undefined) return { points: [] }
  const { ageMs, requests } = found
  const { slot, ended, allowed, rejected } = requests.history
  const end = time - ageMs - ended
  const points = allowed.map((count, i): SeriesPoint => [end - i * slot, (count / slot) * 1_000, ((rejected[i] ?? 0) / slot) * 1_000])
  return { points: points.reverse() }
}

/**
 * Units and rejected requests of a key in one policy, from the samples of its use and from its sparkline. Use that falls at the end of an
 * interval counts as nothing allowed.
 */
export function keySeries(keys: KeyMemory, limited: LimitedKeys, policy: string, key: string): Series {
  const samples = keys.samples(policy, key)
  const { end, steps } = limited.steps(policy, key)
  const from = end - steps.length * STEP
  const rejectedAt = (time: number): number | null => {
    const step = steps[Math.ceil((time - from) / STEP) - 1]
    return step === undefined ? null : (step / STEP) * 1_000
  }
  const points = samples.slice(1).map(([time, used], i): SeriesPoint => {
    const [before, usedBefore] = samples[i] as readonly [number, number]
    return [time, (Math.max(0, used - usedBefore) / (time - before)) * 1_000, rejectedAt(time)]
  })
  if (points.length > 0) return { points }
  return { points: steps.map((count, i): SeriesPoint => [from + (i + 1) * STEP, null, (count / STEP) * 1_000]) }
}
