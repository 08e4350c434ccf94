import { compare, flood, LEVELS, mayWait, shares, WAYS, type Way } from '@weir/bench/waiting/queue'
import { ideal } from '@weir/bench/waiting/virtual'
import { describe, expect, test } from 'vitest'

const SECONDS = 20
/** The part that windows in the background may allow more, a few units per process. */
const MORE = 1.04

test('one central queue lets requests go in their order, evenly or by windows', () => {
  const arrivals = [0, 1, 2, 3, 950, 2_500].map((at) => ({ node: 0, at }))
  expect(ideal(arrivals, 2, 1_000, 'even')).toEqual([0, 500, 1_000, 1_500, 2_000, 2_500])
  expect(ideal(arrivals, 2, 1_000, 'windows')).toEqual([0, 1, 1_000, 1_000, 2_000, 2_500])
})

describe.each(WAYS)('requests that wait at several nodes, $name', (way) => {
  test.each([1, 3, 12])('wait hardly longer than in one central queue, and use the whole limit: %i nodes', async (nodes) => {
    for (const roundTrip of [1, 20]) {
      for (const load of [0.5, 0.9, 1.2]) {
        const found = await compare(way, load, nodes, roundTrip, SECONDS)
        const what = `${roundTrip} ms, x${load}`
        expect(found.wait, what).toBeLessThanOrEqual(mayWait(found, roundTrip))
        if (load > 1) expect(found.went / found.idealWent, what).toBeGreaterThanOrEqual(0.98)
        if (way.pace === 'windows') expect(found.went / found.idealWent, what).toBeLessThanOrEqual(way.name === "'background'" ? MORE : 1)
      }
    }
  })
})

const [leases, central, background, bucket, asked] = WAYS as [Way, Way, Way, Way, Way]

test.each([
  { way: leases, roundTrip: 1, load: 1.2 },
  { way: leases, roundTrip: 20, load: 2 },
  { way: central, roundTrip: 20, load: 2 },
  { way: background, roundTrip: 1, load: 2 },
  { way: background, roundTrip: 20, load: 2 },
  { way: bucket, roundTrip: 1, load: 2 },
  { way: bucket, roundTrip: 20, load: 1.2 },
  { way: asked, roundTrip: 1, load: 2 },
  { way: asked, roundTrip: 20, load: 2 },
])('nodes are served by what comes to them: $way.name, $roundTrip ms, x$load', async ({ way, roundTrip, load }) => {
  // A shorter time has too few requests of the processes with the least traffic.
  const found = await shares(way, load, roundTrip, 200)
  expect(Math.min(...found)).toBeGreaterThanOrEqual(0.8)
  expect(Math.max(...found)).toBeLessThanOrEqual(1.2)
})

test.each(LEVELS.flatMap((level) => [1, 20].map((roundTrip) => ({ ...level, roundTrip }))))(
  'a flood at twelve nodes that several policies count: $name, $roundTrip ms',
  async ({ policies, pace, roundTrip }) => {
    const { unfair, exchanges, most } = await flood(policies, 12, roundTrip, 0)
    expect(unfair).toBeLessThanOrEqual(1.5)
    expect(exchanges).toBeLessThanOrEqual(1.5)
    if (pace === 'even') expect(most).toBeLessThanOrEqual(101)
  },
)
