import { describe, expect, test, vi } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import { escalating } from '../../src/decide/escalating.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { CENTRAL, started } from '../support/central.ts'
import { type Node, type Scene, scene, thrownBy } from '../support/nodes.ts'

/** Compares each feature of a policy, for every algorithm, between decisions of the store and of one process. */

const ALGORITHMS: readonly Algorithm[] = [
  fixedWindow(),
  fixedWindow({ start: 'first-request' }),
  slidingWindow(),
  slidingCounter(),
  slidingLog(),
  tokenBucket(),
  tokenBucket({ burst: 6 }),
  tokenBucket({ warmUp: '2s' }),
  leakyBucket({ burst: 9, immediate: 4 }),
]

/** Uses a process, and notes the decisions. */
interface Play {
  ask(count: number, options?: Parameters<Node['checkAsync']>[1]): Promise<Decision>
  pass(milliseconds: number): Promise<void>
  update(change: Partial<PolicyOptions>): void
  readonly node: Node
  readonly algorithm: Algorithm
}

const FEATURES: Readonly<Record<string, { readonly policy?: Partial<PolicyOptions>; play(it: Play): Promise<void> }>> = {
  costs: {
    async play({ ask, pass }) {
      for (const cost of [3, 0.5, 4, 4, 2, 11]) await ask(1, cost)
      await pass(4_000)
      await ask(2, 3)
    },
  },
  'a request after exactly retry-after': {
    async play({ ask, pass }) {
      const { retryAfterMs } = await ask(11)
      await pass(retryAfterMs)
      await ask(2)
    },
  },
  refunds: {
    async play({ ask, pass, node }) {
      const first = await ask(1, 4)
      await ask(1, 2)
      node.refund(first, 3)
      await pass(1)
      await ask(3)
      node.refund(first)
      node.refund(first)
      await pass(1)
      await ask(7)
    },
  },
  'refunds of units that have run out': {
    async play({ ask, pass, node }) {
      const first = await ask(1, 4)
      await pass(45_000)
      await ask(3)
      node.refund(first)
      await pass(1)
      await ask(9)
    },
  },
  charges: {
    async play({ ask, pass, node }) {
      const first = await ask(1)
      node.charge(first, 4)
      await pass(1)
      await ask(1)
      node.charge(first, 20)
      await pass(1)
      await ask(1)
      await pass(15_000)
      await ask(1)
    },
  },
  'blocks by hand': {
    async play({ ask, pass, node }) {
      await ask(2)
      node.block('k', '3s')
      await ask(1)
      await pass(3_001)
      await ask(1)
      node.block('k', '1h')
      node.unblock('k')
      await ask(1)
    },
  },
  resets: {
    async play({ ask, pass, node }) {
      await ask(11)
      node.reset('k')
      await ask(4)
      const last = await ask(1)
      node.reset('k')
      node.refund(last)
      await pass(1)
      await ask(11)
    },
  },
  'a reset ends a cooldown': {
    policy: { cooldown: '30s' },
    async play({ ask, node }) {
      await ask(12)
      node.reset('k')
      await ask(2)
    },
  },
  'limits of single requests': {
    async play({ ask, pass }) {
      await ask(5, { limit: 3 })
      await ask(2, { limit: 20 })
      await ask(1, { limit: 0 })
      await ask(1, { limit: Number.POSITIVE_INFINITY })
      await ask(1)
      await pass(20_000)
      await ask(1, { cost: 2, limit: 5 })
    },
  },
  cooldowns: {
    policy: { cooldown: '20s' },
    async play({ ask, pass }) {
      await ask(12)
      await pass(15_000)
      await ask(1)
      await pass(45_000)
      await ask(2)
    },
  },
  'escalating cooldowns': {
    policy: { cooldown: escalating({ base: '20s', factor: 3, max: '5m' }) },
    async play({ ask, pass }) {
      await ask(12)
      await pass(45_000)
      await ask(12)
      await pass(45_000)
      await ask(1)
    },
  },
  'dry runs': {
    policy: { dryRun: true, limit: 3 },
    async play({ ask, pass }) {
      for (let i = 0; i < 12; i++) {
        await ask(1)
        await pass(1)
      }
    },
  },
  'an update of the limit or the cooldown, which keeps counts and blocks': {
    async play({ ask, pass, update, node }) {
      await ask(6)
      node.block('other', '1h')
      update({ limit: 20 })
      await ask(2)
      update({ limit: 5 })
      await ask(1)
      update({ cooldown: '1m', limit: 7 })
      await ask(3)
      await pass(25_000)
      await ask(1)
    },
  },
  'an update of the interval, which starts from zero': {
    async play({ ask, update, node }) {
      await ask(8)
      node.block('k', '1s')
      update({ interval: '20s' })
      await ask(1)
      node.unblock('k')
      await ask(7)
    },
  },
  'an update of the algorithm, which starts from zero': {
    async play({ ask, update, node, algorithm }) {
      await ask(8)
      node.block('k', '1s')
      update({ algorithm: algorithm.id === 'sliding-log' ? fixedWindow() : slidingLog() })
      await ask(1)
      node.unblock('k')
      await ask(12)
    },
  },
}

/** The noted fields of a decision. Numbers are rounded, so that rounding errors make no difference. */
type Note = readonly [allowed: boolean, reason: string, limit: number, cost: number, remaining: number, retryAfterMs: number]

async function noted(coordination: 'local' | 'central', algorithm: Algorithm, feature: string): Promise<readonly Note[]> {
  const it = scene()
  const { policy: more = {}, play } = FEATURES[feature] as (typeof FEATURES)[string]
  const policy = { ...CENTRAL, algorithm, ...more, coordination } as PolicyOptions<never>
  const node = it.node(policy, coordination === 'local' ? { alone: true } : {})
  if (coordination === 'central') await started(it, node)
  else await it.world.run(1_100)
  const notes: Note[] = []
  let now = policy
  await play({
    node,
    algorithm,
    async ask(count, options) {
      let last: Decision | undefined
      for (let i = 0; i < count; i++) {
        const decision = await settled(it, node.checkAsync('k', options))
        const { allowed, reason, limit, cost, remaining, retryAfterMs } = decision
        // A dry run doesn't wait for the store, so its remaining units are from earlier answers.
        const left = policy.dryRun === true ? 0 : Math.round(remaining * 100) / 100
        notes.push([allowed, reason, limit, cost, left, Math.round(retryAfterMs / 20)])
        last = decision
      }
      return last as Decision
    },
    pass: (milliseconds) => it.world.run(milliseconds),
    update(change) {
      now = { ...now, ...change } as PolicyOptions<never>
      node.update([now as PolicyOptions])
    },
  })
  await it.close()
  return notes
}

/** Lets no time pass, because the store answers at once. */
async function settled(it: Scene, asked: Promise<Decision>): Promise<Decision> {
  let done = false
  const decided = asked.finally(() => {
    done = true
  })
  for (let i = 0; !done && i < 100; i++) await it.world.run(0)
  return await decided
}

for (const feature of Object.keys(FEATURES)) {
  describe(feature, () => {
    test.each(ALGORITHMS.map((algorithm) => [algorithm.id, algorithm] as const))('%s', async (_, algorithm) => {
      const local = await noted('local', algorithm, feature)
      expect(local.some(([allowed]) => allowed)).toBe(true)
      expect(local.some(([allowed, reason]) => !allowed || reason !== 'ok')).toBe(true)
      expect(await noted('central', algorithm, feature)).toEqual(local)
    })
  })
}

describe('an update of the coordination starts from zero, and blocks stay', () => {
  const CHANGES = [
    ['central', 'local'],
    ['local', 'central'],
  ] as const
  const rows = CHANGES.flatMap(([before, after]) => ALGORITHMS.map((algorithm) => [before, after, algorithm.id, algorithm] as const))
  test.each(rows)('from %s to %s: %s', async (before, after, _, algorithm) => {
    const allowed = async (it: Scene, node: Node): Promise<number> => {
      let count = 0
      for (let i = 0; i < 12; i++) if ((await settled(it, node.checkAsync('k'))).allowed) count++
      return count
    }
    const policy = (coordination: typeof after) => ({ ...CENTRAL, algorithm, coordination })
    const fresh = scene()
    const most = await allowed(fresh, fresh.node(policy('local'), { alone: true }))
    expect(most).toBeGreaterThan(0)
    await fresh.close()
    const it = scene()
    const node = it.node(policy(before))
    if (before === 'central') await started(it, node)
    else node.start()
    expect(await allowed(it, node)).toBe(most)
    node.block('other', '1h')
    node.update([policy(after)])
    if (after === 'central') await vi.waitFor(() => expect(it.store.deciders).toBe(1), { timeout: 4_000, interval: 5 })
    await it.world.run(1_100)
    expect(await allowed(it, node)).toBe(most)
    expect((await settled(it, node.checkAsync('other'))).reason).toBe('blocked')
    await it.close()
  })
})

describe('on one request with a policy of another coordination, all count or none', () => {
  const OTHERS = ['local', 'background', 'periodic', 'leased', 'central'] as const
  const rows = OTHERS.flatMap((coordination) => ALGORITHMS.map((algorithm) => [coordination, algorithm.id, algorithm] as const))
  test.each(rows)('%s, and central %s', async (coordination, _, algorithm) => {
    for (const [others, asked] of [
      [3, 8],
      [8, 3],
    ] as const) {
      const it = scene()
      // No process takes units ahead that stay unused in the end.
      const other = { name: 'other', limit: others, interval: 3_600_000, coordination }
      const node = it.node([other, { ...CENTRAL, algorithm, name: 'asked', interval: 3_600_000 }])
      await started(it, node)
      let allowed = 0
      let rejected: Decision | undefined
      for (let i = 0; i < 10; i++) {
        const decision = await settled(it, node.checkAsync('k', asked === 3 && i === 0 ? { limit: 10 } : undefined))
        if (decision.allowed) allowed++
        else rejected = decision
        await it.world.run(5)
        if (asked === 3 && allowed === 3) node.block('k', '1h', { policy: 'asked' })
      }
      expect(allowed).toBe(3)
      expect(rejected?.policy?.name).toBe(others === 3 ? 'other' : 'asked')
      const usage = node.usage('k')
      await it.world.run(1_000)
      const used = (await usage).map(({ used: units }) => Math.round(units))
      expect(used[0]).toBe(3)
      await it.close()
    }
  })
})

test('what the store can not decide is rejected by name', () => {
  const it = scene()
  expect(thrownBy(() => it.node({ ...CENTRAL, failMode: 'published' } as never))).toMatchObject({ code: 'WEIR_INVALID_OPTION' })
  const alone = { ...CENTRAL, algorithm: { name: 'mine()', id: 'mine', local: fixedWindow().local as never } }
  const error = thrownBy(() => it.node(alone as never))
  expect(error).toMatchObject({ code: 'WEIR_INVALID_OPTION' })
  expect(error.message).toContain('mine()')
})
