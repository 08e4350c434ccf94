import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Guard } from '../../src/http/adapter.ts'
import { concurrency, createThrottler, tokenBucket } from '../../src/index.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { type FollowOptions, follow, type JudgedPolicy, type RulesFollower } from '../../src/rules/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { type Node, offer, scene } from '../support/nodes.ts'

const rule = (name: string, limit: number, more: object = {}) => ({ name, limit, interval: '1h', key: 'ip', ...more })

async function judging(
  document: object,
  options: FollowOptions & { alone?: boolean } = {},
): Promise<{ node: Node; rules: RulesFollower; world: ReturnType<typeof scene>['world'] }> {
  const { alone = true, ...rest } = options
  const { node: make, world } = scene()
  const node = make({ name: 'first', limit: 1, interval: '1h', key: 'ip' }, { alone })
  let text = JSON.stringify({ version: 1, ...document })
  const rules = follow({ throttler: node }, { name: 'the test', interval: 1_000, read: async () => text }, rest)
  await world.settle()
  expect(rules.status).toMatchObject({ version: 1, rejected: undefined })
  return Object.assign({ node, rules, world }, { put: (next: string) => (text = next) })
}

const numbersOf = (judged: readonly JudgedPolicy[]) => judged.map(({ policy, allowed, rejected }) => [policy, allowed, rejected])

describe('rules to come', () => {
  test('that are stricter reject nobody, and tell whom they would', async () => {
    const { node, rules } = await judging({ policies: [rule('a', 10)], next: { policies: [rule('a', 4)] } })
    expect(offer(node, 'many', 12)).toBe(10)
    expect(offer(node, 'few', 3)).toBe(3)
    expect(rules.judged()).toEqual([{ policy: 'a', allowed: 7, rejected: 8, keys: [{ key: 'many', rejected: 8 }] }])
  })

  test('that are looser are judged on what is rejected now, too', async () => {
    const { node, rules } = await judging({ policies: [rule('a', 10)], next: { policies: [rule('a', 15)] } })
    expect(offer(node, 'k', 20)).toBe(10)
    expect(numbersOf(rules.judged())).toEqual([['a', 15, 5]])
  })

  test('decide together: what one of them rejects the others do not count', async () => {
    const { node, rules } = await judging({
      policies: [rule('a', 100)],
      next: { policies: [rule('a', 5), rule('b', 50)] },
    })
    offer(node, 'k', 20)
    expect(numbersOf(rules.judged())).toEqual([
      ['a', 5, 15],
      ['b', 5, 0],
    ])
  })

  test('are not seen by who asks about a request', async () => {
    const { node } = await judging({ policies: [rule('a', 10)], next: { policies: [rule('a', 2), rule('c', 3)] } })
    for (let i = 0; i < 5; i++) expect(node.check('k')).toMatchObject({ allowed: true, dryRun: false, limit: 10, remaining: 9 - i })
    expect(node.check('k').parts.map(({ policy }) => policy?.name)).toEqual(['a'])
    expect(node.peek('k').parts).toHaveLength(1)
    expect(await node.checkAsync('k')).toMatchObject({ limit: 10 })
    expect(adapterOf(node).decide([undefined, 'x', undefined], [1, 1, 1], [1], 1)).toMatchObject({ allowed: true, policy: undefined })
  })

  test('have their own limits of keys, plans and functions', async () => {
    const { node, rules } = await judging(
      {
        policies: [rule('a', 10)],
        next: {
          policies: [{ name: 'p', key: 'ip', interval: '1h', plans: { free: 2, pro: 5 }, plan: 'planOf' }],
          overrides: [{ policy: 'p:free', key: 'k', limit: 1 }],
        },
      },
      { plans: { planOf: () => 'free' } },
    )
    offer(node, 'k', 4)
    // Without a request the plan is unknown, so the policy of each plan decides.
    expect(numbersOf(rules.judged())).toEqual([
      ['p:free', 1, 3],
      ['p:pro', 1, 0],
    ])
  })

  test('ask the store for no request, and hold none', async () => {
    const next = [
      rule('central', 1, { coordination: 'central', storeTimeout: '1s', algorithm: 'tokenBucket' }),
      rule('leased', 1, { coordination: 'leased' }),
      rule('delay', 1, { delay: '5s' }),
      { name: 'slots', key: 'ip', limit: 1, algorithm: 'concurrency', coordination: 'leased' },
    ]
    const { node, rules } = await judging(
      { policies: [rule('a', 10)], next: { policies: next } },
      { alone: false, algorithms: { tokenBucket, concurrency } },
    )
    expect(adapterOf(node).waits).toBe(false)
    expect(offer(node, 'k', 5)).toBe(5)
    expect(rules.judged().map(({ policy }) => policy)).toEqual(['central', 'leased', 'delay'])
    expect(snapshot(node).policies.map(({ name, dryRun, coordination }) => [name, dryRun, coordination])).toEqual([
      ['a', false, 'background'],
      ['next:central', true, 'background'],
      ['next:leased', true, 'background'],
      ['next:delay', true, 'background'],
    ])
  })

  test('that are bad reject the whole document', async () => {
    const node = scene().node({ name: 'first', limit: 1, interval: '1h', key: 'ip' }, { alone: true })
    const text = JSON.stringify({ version: 1, policies: [rule('a', 1)], next: { policies: [rule('a', 0)] } })
    const rules = follow(node, { name: 'x', interval: 1_000, read: async () => text })
    await rules.ready
    expect(rules.status.rejected?.problem).toContain('next.policies[0].limit')
    expect(node.policies[0]?.name).toBe('first')
  })

  test('are in no header field', () => {
    const by = { key: 'ip' }
    const policies = [rule('a', 10, by), { ...rule('b', 5, by), candidate: true }] as never
    const clock = scene().world.clock()
    const fields = (given: never) => {
      const set: Record<string, string> = {}
      const guard = new Guard(
        { throttler: createThrottler({ policies: given, clock }) } as never,
        { method: () => 'GET', path: () => '/', route: () => undefined, ip: () => '1.1.1.1', header: () => undefined } as never,
      )
      const decision = guard.check({})
      if (decision === undefined || decision instanceof Promise) throw new Error('not decided')
      guard.writeHeaders(decision, set, (to, name, value) => {
        to[name] = value
      })
      return set
    }
    expect(fields(policies)).toEqual(fields([rule('a', 10, by)] as never))
  })

  test('would reject exactly what they reject when they hold', () => {
    fc.assert(
      fc.property(
        fc.record({ running: fc.integer({ min: 1, max: 8 }), a: fc.integer({ min: 1, max: 8 }), b: fc.integer({ min: 1, max: 8 }) }),
        fc.array(fc.record({ key: fc.constantFrom('x', 'y'), cost: fc.integer({ min: 1, max: 3 }) }), { maxLength: 30 }),
        ({ running, a, b }, requests) => {
          const { node } = scene()
          const next = [rule('a', a), rule('b', b)]
          const judged = node([rule('now', running), ...next.map((one) => ({ ...one, candidate: true }))] as never, { alone: true })
          const holding = node(next as never, { alone: true })
          for (const { key, cost } of requests) {
            judged.check(key, cost)
            holding.check(key, cost)
          }
          const sums = (of: Node) =>
            snapshot(of)
              .policies.filter(({ name }) => name !== 'now')
              .map(({ allowed, rejected }) => [allowed, rejected])
          expect(sums(judged)).toEqual(sums(holding))
        },
      ),
    )
  })
})
