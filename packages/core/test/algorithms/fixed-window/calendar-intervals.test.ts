import { describe, expect, test } from 'vitest'
import type { Coordination } from '../../../src/algorithms/algorithm.ts'
import { slidingWindow } from '../../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../../src/algorithms/token-bucket/index.ts'
import type { Decision } from '../../../src/decide/decision.ts'
import { HeaderWriter } from '../../../src/http/answer/headers.ts'
import { snapshot } from '../../../src/inspect/snapshot.ts'
import { calendar } from '../../../src/options/calendar.ts'
import { type Node, type Scene, scene } from '../../support/nodes.ts'
import { EPOCH } from '../../support/world.ts'

const HOUR = 3_600_000
const MINUTE = 60_000

/** A scene whose clocks all start at this time, also the clocks of its processes. */
function sceneAt(time: string): Scene {
  const offset = Date.parse(time) - EPOCH
  const it = scene({ storeOffset: offset })
  return { ...it, node: (policy, options) => it.node(policy, { offset, ...options }) }
}

/** Starts processes, and waits until they are connected and have loaded their code. */
async function started(it: Scene, nodes: readonly Node[]): Promise<void> {
  for (const node of nodes) node.start()
  for (let waited = 0; waited < 30; waited++) {
    // Code for a coordination is loaded in real time.
    await new Promise((resolve) => setTimeout(resolve, 5))
    await it.world.run(100)
  }
}

/** The decision of a process, even if it must wait for the store. */
async function decide(it: Scene, node: Node, key: string, cost?: number): Promise<Decision> {
  let decision: Decision | undefined
  const asked = node.checkAsync(key, cost).then((one) => {
    decision = one
  })
  for (let waited = 0; decision === undefined && waited < 1_000; waited++) await it.world.run(1)
  await asked
  return decision as Decision
}

const COORDINATIONS: readonly Coordination[] = ['local', 'background', 'periodic', 'leased', 'central']

describe.each(COORDINATIONS)('intervals of a calendar, %s', (coordination) => {
  const shared = coordination !== 'local'
  const policy = { limit: 60, interval: calendar('day', { timeZone: 'Europe/Prague' }), spans: 1000, coordination } as const

  test('end at local midnight, at all nodes; a day of 23 hours is told as such', async () => {
    // Five minutes before the day on which the clocks go forward.
    const it = sceneAt('2026-03-28T22:55:00Z')
    // In the basic algorithm a process that syncs first does not get the later writes of others.
    const count = coordination === 'periodic' || !shared ? 1 : 3
    const nodes = Array.from({ length: count }, () => it.node(policy, { alone: !shared }))
    await started(it, nodes)
    const [first] = nodes as [Node]
    let allowed = 0
    for (let i = 0; i < 120; i++) if ((await decide(it, nodes[i % nodes.length] as Node, 'k')).allowed) allowed++
    expect(allowed).toBe(60)
    for (const node of nodes) {
      const rejected = await decide(it, node, 'k')
      expect(rejected.allowed).toBe(false)
      const left = 5 * MINUTE - it.world.time
      expect(rejected.retryAfterMs).toBeGreaterThan(left - 50)
      expect(rejected.retryAfterMs).toBeLessThan(left + 50)
      expect(first.peek('k').remaining).toBe(0)
    }
    await it.world.runTo(5 * MINUTE + 200)
    for (const node of nodes) {
      const allowed = await decide(it, node, 'k')
      expect(allowed.allowed).toBe(true)
      expect(allowed.resetAfterMs).toBeGreaterThan(23 * HOUR - MINUTE)
      expect(allowed.resetAfterMs).toBeLessThanOrEqual(23 * HOUR)
    }
    await it.world.run(2 * MINUTE)
    const total = first.usage('k')
    await it.world.run(100)
    expect((await total)[0]?.used).toBe(nodes.length)
    await it.close()
  })

  test('are of their own length in fields, snapshots and rules', async () => {
    const it = sceneAt('2027-02-27T12:00:00Z')
    const monthly = { ...policy, interval: calendar('month', { timeZone: 'America/New_York' }) }
    const node = it.node(monthly, { alone: !shared })
    await started(it, [node])
    const decision = await decide(it, node, 'k')
    expect(new HeaderWriter(node.policies).policyField(decision)).toBe(`"default";q=60;w=${28 * 24 * 3_600}`)
    expect(snapshot(node).policies[0]?.intervalMs).toBe(28 * 24 * HOUR)
    expect(node.policies[0]?.id).toContain('month@America/New_York')
    await it.close()
  })

  test('what was refunded, charged and reset counts in the running one', async () => {
    const it = sceneAt('2026-10-24T22:10:00Z')
    const node = it.node(policy, { alone: !shared })
    await started(it, [node])
    const some = await decide(it, node, 'k', 20)
    expect(some.allowed).toBe(true)
    expect(some.resetAfterMs).toBeGreaterThan(24 * HOUR)
    node.refund(some, 10)
    node.charge(some, 5)
    await it.world.run(2 * MINUTE)
    expect((await decide(it, node, 'k')).remaining).toBe(60 - 16)
    node.reset('k')
    await it.world.run(2 * MINUTE)
    expect((await decide(it, node, 'k')).remaining).toBe(59)
    await it.close()
  })
})

test('a node that joins late hears of keys that are hot, though the store numbers days by UTC', async () => {
  for (const timeZone of ['Pacific/Auckland', 'America/Los_Angeles']) {
    const it = sceneAt('2026-11-23T12:30:00Z')
    const policy = { limit: 100, interval: calendar('day', { timeZone }) }
    const first = it.node(policy)
    await started(it, [first])
    expect(first.check('k', 90).allowed).toBe(true)
    await it.world.run(1_000)
    const second = it.node(policy)
    await started(it, [second])
    expect(second.peek('k').remaining).toBe(10)
    await it.close()
  }
})

test('after 8 hours of sleep days that a process counts alone begin late, and later ones come back to midnight', async () => {
  const it = sceneAt('2026-11-23T08:00:00Z')
  const node = it.node({ limit: 2, interval: calendar('day') }, { alone: true })
  node.check('k')
  await it.world.run(2 * HOUR)
  node.clock.offset += 8 * HOUR
  const begun: string[] = []
  while (begun.length < 6) {
    if (node.peek('k').remaining === 2) {
      begun.push(new Date(node.clock.now()).toISOString().slice(11, 16))
      node.check('k')
    }
    await it.world.run(10 * MINUTE)
  }
  expect(begun).toEqual(['08:00', '05:50', '03:40', '01:30', '00:00', '00:00'])
  await it.close()
})

test('throttlers of one store with different calendars are different rules', () => {
  const it = scene()
  const node = it.node({ limit: 1, interval: calendar('day') })
  expect(() => node.update([{ limit: 1, interval: calendar('day', { timeZone: 'Europe/Prague' }) }])).not.toThrow()
  expect(node.policies[0]?.id).toContain('day@Europe/Prague')
})

test.each([
  ['slidingWindow()', slidingWindow()],
  ['tokenBucket()', tokenBucket()],
])('%s has no intervals of a calendar', (name, algorithm) => {
  expect(() => scene().node({ limit: 1, interval: calendar('day'), algorithm })).toThrow(
    `Option "interval" is "day@UTC". Use a duration such as "30d" with ${name}`,
  )
})
