import assert from 'node:assert/strict'
import type { ContractCase } from './case.ts'
import { type ContractNode, cell, defined, fixedPolicy, net } from './context.ts'

const policy = fixedPolicy()

/** Keys that would collide, break a line or choose a Redis slot if a store did not treat them as data. */
export const HOSTILE_KEYS: readonly string[] = [
  '',
  ':',
  'a:b',
  'a%3ab',
  'a%3Ab',
  '{a}',
  '{a}b',
  '}{',
  'a b',
  'a\nb',
  'a\r\nb',
  'a\u0000b',
  'a\u2028b',
  'é',
  'e\u0301',
  '\ud800',
  '\udfff',
  '\ufffd',
  '%ud800',
  '😀',
  '__proto__',
  'constructor',
  '%#',
  '"',
  "'",
  '\\',
  '1|0|',
  'x'.repeat(200),
  'x'.repeat(201),
  `${'x'.repeat(1_000)}1`,
  `${'x'.repeat(1_000)}2`,
]

/** Totals of fixed windows. */
export const countCases: readonly ContractCase[] = [
  {
    title: 'the total of a cell is the sum over the nodes',
    async run(context) {
      const [a, b, c] = (await context.nodes(3)) as [ContractNode, ContractNode, ContractNode]
      assert.equal(net(await a.count(policy, 'k', 5)), 5)
      assert.equal(net(await b.count(policy, 'k', 7)), 12)
      assert.equal(net(await c.count(policy, 'k', 0)), 12)
      assert.equal(net(await a.count(policy, 'k', 6)), 13)
    },
  },
  {
    title: 'a request that is sent twice counts once, and a late duplicate changes nothing',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await a.count(policy, 'k', 5)
      await a.count(policy, 'k', 5)
      await a.count(policy, 'k', 9)
      await a.count(policy, 'k', 5)
      assert.equal(net(await b.count(policy, 'k', 0)), 9)
    },
  },
  {
    title: 'refunded units stay refunded under duplicates in any order',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const ordinal = context.ordinal(policy)
      await a.count(policy, 'k', [cell(ordinal, 5)])
      await b.count(policy, 'k', [cell(ordinal, 4)])
      const { cells } = await a.count(policy, 'k', [cell(ordinal, 5, 2)])
      assert.deepEqual(cells, [cell(ordinal, 9, 2)])
      await a.count(policy, 'k', [cell(ordinal, 5)])
      await a.count(policy, 'k', [cell(ordinal, 5, 2)])
      assert.deepEqual((await b.count(policy, 'k', [cell(ordinal, 4, 1)])).cells, [cell(ordinal, 9, 3)])
    },
  },
  {
    title: 'fractions of units add up',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await a.count(policy, 'k', 0.1)
      assert.ok(Math.abs(net(await b.count(policy, 'k', 0.2)) - 0.3) < 1e-9)
      assert.ok(Math.abs(net(await a.count(policy, 'k', 1234567.0625)) - 1234567.2625) < 1e-6)
    },
  },
  {
    title: 'several cells in one entry come back in their order',
    async run(context) {
      const node = await context.node()
      const ordinal = context.ordinal(policy)
      const sent = [cell(ordinal, 3), cell(ordinal - 1, 8, 1), cell(ordinal + 1, 0)]
      assert.deepEqual((await node.count(policy, 'k', sent)).cells, sent)
    },
  },
  {
    title: 'policies, keys and cells do not mix',
    async run(context) {
      const node = await context.node()
      const other = fixedPolicy({ id: 'fixed:k' })
      const ordinal = context.ordinal(policy)
      await node.count(policy, 'k', [cell(ordinal, 1)])
      await node.count(policy, 'k:k', [cell(ordinal, 2)])
      await node.count(other, 'k', [cell(ordinal, 4)])
      await node.count(policy, 'k', [cell(ordinal + 1, 8)])
      assert.equal(net(await node.count(policy, 'k', [cell(ordinal, 0)])), 1)
      assert.equal(net(await node.count(policy, 'k:k', [cell(ordinal, 0)])), 2)
      assert.equal(net(await node.count(other, 'k', [cell(ordinal, 0)])), 4)
    },
  },
  {
    title: 'keys are data: no two of them collide',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const ordinal = context.ordinal(policy)
      const entries = HOSTILE_KEYS.map((key, i) => ({ policy, key, cells: [cell(ordinal, i + 1)] }))
      await a.sync({ entries })
      const { results } = await b.sync({ entries: entries.map((entry) => ({ ...entry, cells: [cell(ordinal, 0)] })) })
      assert.deepEqual(
        results.map((result) => net(defined(result))),
        HOSTILE_KEYS.map((_, i) => i + 1),
      )
    },
  },
  {
    title: 'a batch of 10,000 keys is exchanged whole',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const ordinal = context.ordinal(policy)
      const entries = Array.from({ length: 10_000 }, (_, i) => ({ policy, key: `key ${i}`, cells: [cell(ordinal, i)] }))
      for (const node of [a, b]) {
        const { results } = await context.eventually(async () => {
          const reply = await node.sync({ entries })
          assert.ok(!reply.results.includes(undefined), 'parts of the batch failed')
          return reply
        })
        results.forEach((result, i) => {
          assert.equal(net(defined(result)), node === a ? i : 2 * i)
        })
      }
    },
  },
  {
    title: 'exchanges of the same keys, at the same time and in any order, are all answered, and all that they say counts',
    async run(context) {
      const nodes = await context.nodes(4)
      const ordinal = context.ordinal(policy)
      const keys = Array.from({ length: 30 }, (_, i) => `key ${i}`)
      const turned = [keys, keys.toReversed(), [...keys.slice(15), ...keys.slice(0, 15)]]
      const entriesOf = (order: readonly string[], taken: number) => order.map((key) => ({ policy, key, cells: [cell(ordinal, taken)] }))
      // A process may have several syncs in flight.
      const replies = await Promise.all(nodes.flatMap((node) => turned.map((order, i) => node.sync({ entries: entriesOf(order, i + 1) }))))
      for (const { results } of replies) assert.ok(!results.includes(undefined), 'parts of an exchange failed')
      const { results } = await defined(nodes[0]).sync({ entries: entriesOf(keys, 0) })
      assert.deepEqual(new Set(results.map((result) => net(defined(result)))), new Set([4 * turned.length]))
    },
  },
  {
    title: 'what was lost is whole again once the nodes have sent their counts again',
    needs: ['lose'],
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const first = await context.eventually(() => a.beat(undefined, [policy]))
      await a.count(policy, 'k', 5)
      await b.count(policy, 'k', 7)
      await context.fixture.lose?.()
      await context.eventually(async () => {
        assert.notEqual((await a.beat(first.cursor, [policy])).generation, first.generation)
      })
      const { generation } = await a.beat(first.cursor, [policy])
      assert.equal(net(await context.eventually(() => a.count(policy, 'k', 5))), 5)
      assert.equal(net(await context.eventually(() => b.count(policy, 'k', 7))), 12)
      assert.equal((await a.beat(first.cursor, [policy])).generation, generation, 'it changes once')
    },
  },
  {
    title: 'everything that is written expires',
    needs: ['leftovers'],
    async run(context) {
      const short = fixedPolicy({ id: 'short', width: 100, ttl: 200, limit: 2, hot: 1 })
      const sliding = fixedPolicy({ id: 'short sliding', width: 100, cells: 4, ttl: 200, limit: 2, hot: 1 })
      const node = await context.node()
      for (const one of [short, sliding]) {
        await node.count(one, 'k', [cell(context.ordinal(one), 3, 1), cell(context.ordinal(one) - 1, 1)])
        await node.block(one, 'k', 'exceeded', 100)
        await node.block(one, 'l', 'set', 100)
        await node.block(one, 'l', 'lift', 0)
      }
      await node.beat(undefined, [short, sliding], 100)
      await node.connection.close()
      await context.eventually(async () => assert.deepEqual(await context.fixture.leftovers?.(), []))
    },
  },
]
