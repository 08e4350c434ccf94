import { seeds } from '@weir/tooling/seed'
import { expect, test, vi } from 'vitest'
import { type Chance, disturb, expectEnded, expectPace, play } from '../support/queue-chaos.ts'

// These tests compute a lot, so they need more time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

// Fixed seeds of cases that have failed before.
const FIXED = [228, 369, 405, 900492343, 1034330726, 567861876, 769782766, 21900874, 21900877]

test.each([...seeds(6), ...FIXED])('while the store answers all end in time and in turn, and keep the pace: seed %i', async (seed) => {
  const played = await play(seed, 3_000, () => ({}), undefined)
  const { it, made, roundTrip } = played
  expectEnded(played, roundTrip + 2)
  const went = made.filter(({ outcome }) => outcome.decision?.allowed === true)
  expectPace(played, 0)
  let turned = 0
  for (const [i, one] of went.entries())
    for (const other of went.slice(i + 1)) {
      const alike = one.node === other.node && one.key === other.key && one.priority === other.priority && one.cost === other.cost
      if (alike && made.indexOf(one) < made.indexOf(other) && (one.outcome.at as number) > (other.outcome.at as number)) turned++
    }
  expect(turned).toBe(0)
  await it.close()
})

test.each(seeds(8))('whatever happens meanwhile, all end in time: seed %i', async (seed) => {
  const more = (chance: Chance) => ({ ...(chance.of(0.2) && { cooldown: '500ms' }), ...(chance.of(0.1) && { dryRun: true }) })
  const played = await play(100 + seed, 3_000, more, disturb)
  // Allows for a question until it is answered, or until its storeTimeout.
  expectEnded(played, 112)
  await played.it.close()
})
