import { expect } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { AnyPolicyOptions, PolicyOptions } from '../../src/decide/policy.ts'
import { central } from './central-queues.ts'
import { type Node, seeded } from './nodes.ts'
import { type Outcome, PRIORITIES, type Waiting } from './waiting.ts'

/** A random request for one of two keys at one of up to three processes. */
export interface Made {
  readonly at: number
  readonly node: number
  readonly key: string
  readonly cost: number
  readonly timeout: number
  readonly priority: number
  readonly outcome: Outcome
}

export const ALGORITHMS = [
  leakyBucket(),
  leakyBucket({ burst: 3 }),
  leakyBucket({ burst: 10, immediate: 4 }),
  tokenBucket(),
  tokenBucket({ burst: 5 }),
]
export const KEYS = ['a', 'b'] as const

export class Chance {
  readonly random: () => number

  constructor(seed: number) {
    this.random = seeded(seed)
  }

  of(part: number): boolean {
    return this.random() < part
  }

  pick<T>(...all: readonly T[]): T {
    return all[Math.floor(this.random() * all.length)] as T
  }
}

/**
 * Makes requests for `milliseconds`, and lets something else happen between them.
 *
 * @param beside makes further policies that count the same requests
 */
export async function play(
  seed: number,
  milliseconds: number,
  own: (chance: Chance) => object,
  happens: Happens | undefined,
  beside: (chance: Chance) => readonly PolicyOptions<never>[] = () => [],
) {
  const chance = new Chance(seed)
  const policy = {
    limit: chance.pick(10, 50, 200),
    algorithm: chance.pick(...ALGORITHMS),
    failMode: chance.pick('share', 'open', 'closed'),
    ...(chance.of(0.3) && { key: 'all' }),
    ...own(chance),
  } as PolicyOptions<never>
  const count = chance.pick(1, 2, 3)
  const roundTrip = chance.pick(0, 2, 20)
  const others = beside(chance)
  const it = await central(count, [{ ...policy, name: 'p' } as object, ...others], roundTrip)
  it.store.storeTimeout = 100
  const made: Made[] = []
  for (const end = it.world.time + milliseconds; it.world.time < end; ) {
    await it.world.run(chance.pick(0, 1, 1, 3, 10, 40))
    for (let left = chance.of(0.03) ? 60 : chance.pick(0, 1, 1, 2, 5); left > 0; left--) {
      const controller = new AbortController()
      const node = Math.floor(chance.random() * count)
      const wanted = {
        cost: chance.pick(1, 1, 1, 2, 3),
        timeout: chance.pick(0, 5, 50, 200, 1_000, 4_000),
        priority: chance.pick(0, 0, 1, -1),
      }
      const key = chance.pick(...KEYS)
      const more = { signal: controller.signal, priority: PRIORITIES[wanted.priority + 2] as 'default' }
      const queue = it.queues[node] as Waiting
      const options = { ...wanted, ...more }
      const outcome = chance.of(0.2) ? queue.tryAcquire(key, options) : queue.acquire(key, options)
      made.push({ at: it.world.time, node, key, ...wanted, outcome })
      if (chance.of(0.15)) it.world.setTimer(() => controller.abort(), chance.pick(1, 2, 5, 20, 100, 500))
    }
    happens?.({ it, chance, policy, others, made })
  }
  const asked = it.asked().length
  it.store.health = 'up'
  it.store.unreadable.clear()
  await it.world.run(6_000)
  return { it, made, policy, others, roundTrip, asked }
}

export type Happens = (now: {
  it: Awaited<ReturnType<typeof central>>
  chance: Chance
  policy: PolicyOptions<never>
  others: readonly PolicyOptions<never>[]
  made: readonly Made[]
}) => void

/**
 * Expects that all waiting requests have ended and released their resources. `late` is the number of milliseconds that the store may take.
 */
export function expectEnded({ it, made, asked }: Awaited<ReturnType<typeof play>>, late: number): void {
  for (const { outcome, at, timeout } of made) {
    expect(outcome.at).toBeDefined()
    expect((outcome.at as number) - at).toBeLessThanOrEqual(timeout + late)
    expect(outcome.error === undefined || outcome.failure !== undefined, String(outcome.error)).toBe(true)
  }
  for (const node of it.nodes) {
    expect(node.waiting).toBe(0)
    expect(node.clock.outstanding).toBeLessThanOrEqual(8)
  }
  expect(asked).toBeLessThanOrEqual(2 * made.length + 200)
}

/**
 * Expects that requests were allowed only with capacity in the bucket. `late` is the number of milliseconds between a reservation and its
 * use.
 */
export function expectPace({ made, policy }: Awaited<ReturnType<typeof play>>, late: number): void {
  const went = made.filter(({ outcome }) => outcome.decision?.allowed === true)
  const limit = policy.limit as number
  const atOnce = policy.algorithm?.together?.most?.(limit) ?? policy.algorithm?.most?.(limit) ?? limit
  for (const key of policy.key === 'all' ? [undefined] : KEYS) {
    let level = 0
    let before = 0
    const these = went.filter((one) => key === undefined || one.key === key)
    for (const { outcome, cost } of these.sort((a, b) => (a.outcome.at as number) - (b.outcome.at as number))) {
      const at = outcome.at as number
      level = Math.max(0, level - ((at - before) * limit) / 1_000) + cost
      before = at
      // A request for three units is allowed at once, and other processes may reserve just before reservations return.
      expect(level).toBeLessThanOrEqual(Math.max(1, atOnce) + 2 + 4 + (late * limit) / 1_000)
    }
  }
}

/** Disturbs the store, clocks, blocks, rules and refunds. */
export const disturb: Happens = ({ it, chance, policy, others, made }) => {
  const { store } = it
  const node = it.nodes[Math.floor(chance.random() * it.nodes.length)] as Node
  const update = (...policies: AnyPolicyOptions[]) => {
    for (const one of it.nodes) one.update([...policies, ...(others as readonly AnyPolicyOptions[])])
  }
  const own = { ...policy, name: 'p', interval: 1_000, coordination: 'central' } as const
  if (chance.of(0.03)) store.health = 'up'
  else if (chance.of(0.01)) store.health = chance.pick('mute', 'hanging', 'rejecting')
  if (chance.of(0.015)) store.unreadable.clear()
  else if (chance.of(0.005)) store.unreadable.add(chance.pick('a', 'b', 'all'))
  if (chance.of(0.005)) node.reset(chance.pick(...KEYS))
  if (chance.of(0.005)) node.block(chance.pick(...KEYS), chance.pick('100ms', '2s'))
  if (chance.of(0.01)) node.unblock(chance.pick(...KEYS))
  if (chance.of(0.005)) store.clock.offset += chance.pick(-10_000, 5_000, -100)
  if (chance.of(0.005)) node.clock.offset += chance.pick(-10_000, 5_000)
  if (chance.of(0.005)) update({ ...own, limit: chance.pick(1, 5, 100, 300) } as AnyPolicyOptions)
  if (chance.of(0.005)) update({ ...own, algorithm: chance.pick(...ALGORITHMS) } as AnyPolicyOptions)
  if (chance.of(0.003)) update({ name: 'other', limit: 1_000, interval: 1_000, coordination: 'local' })
  else if (chance.of(0.01)) update(own as AnyPolicyOptions)
  if (chance.of(0.01)) store.roundTrip = chance.pick(0, 2, 20, 45, 60)
  if (chance.of(0.01))
    void node.checkAsync(chance.pick(...KEYS), chance.pick(1, 2)).then((decision) => chance.of(0.5) && node.refund(decision))
  const decision = chance.of(0.01) ? chance.pick(...made)?.outcome.decision : undefined
  if (decision !== undefined) node.refund(decision)
}
