import assert from 'node:assert/strict'
import type { StorePolicy } from '@weir/core/sync'
import type { ContractCase } from './case.ts'
import { assertAbout, type ContractContext, type ContractNode, cell, fixedPolicy, net, slidingPolicy } from './context.ts'
import { HOSTILE_KEYS } from './counts.ts'

const MINUTE = 60_000
const POLICIES: readonly StorePolicy[] = [fixedPolicy(), slidingPolicy()]

/** The moment of a reset, in whole milliseconds like the clocks of processes. */
function epochNow(context: ContractContext, later = 0): number {
  return Math.floor(context.clock.now()) + later
}

/** Resets of keys, and manual blocks. */
export const resetCases: readonly ContractCase[] = [
  {
    title: 'a reset forgets what was counted, and ignores what nodes send of before it',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      for (const policy of POLICIES) {
        const ordinal = context.ordinal(policy)
        const epoch = epochNow(context)
        await a.count(policy, 'k', [cell(ordinal - 1, 2), cell(ordinal, 5)])
        await a.count(policy, 'another', 5)
        await b.count(policy, 'k', 7)
        assert.equal(await a.reset(policy, 'k', epoch), 0)
        const ignored = await b.count(policy, 'k', 9)
        assert.deepEqual([net(ignored), ignored.epoch], [0, epoch])
        const counted = await b.countSince(policy, 'k', 3, epoch)
        assert.deepEqual([net(counted), counted.epoch], [3, undefined])
        assert.equal(net(await a.countSince(policy, 'k', 4, epoch)), 7)
        assert.equal(net(await a.count(policy, 'another', 0)), 5)
      }
    },
  },
  {
    title: 'a reset that is sent twice, or late, clears nothing that was counted after it',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      for (const policy of POLICIES) {
        const epoch = epochNow(context)
        await a.count(policy, 'k', 5)
        await a.reset(policy, 'k', epoch)
        await b.countSince(policy, 'k', 3, epoch)
        await a.reset(policy, 'k', epoch)
        await b.reset(policy, 'k', epoch - 5)
        assert.equal(net(await a.countSince(policy, 'k', 0, epoch)), 3)
        await b.reset(policy, 'k', epoch + 1)
        assert.deepEqual([net(await a.countSince(policy, 'k', 6, epoch))], [0])
        assert.equal(net(await a.countSince(policy, 'k', 6, epoch + 1)), 6)
      }
    },
  },
  {
    title: 'cells long after a reset count whoever sends them',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      for (const policy of POLICIES) {
        const ordinal = context.ordinal(policy)
        await a.reset(policy, 'k', epochNow(context, -2 * policy.width))
        const result = await b.count(policy, 'k', [cell(ordinal, 4)])
        assert.deepEqual([net(result), result.epoch], [4, undefined])
      }
    },
  },
  {
    title: 'who knows of a reset that the store has lost tells it by the counts',
    needs: ['lose'],
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      for (const policy of POLICIES) {
        const epoch = epochNow(context)
        await context.eventually(() => a.reset(policy, 'k', epoch))
        await context.fixture.lose?.()
        await context.eventually(() => b.count(policy, 'k', 8))
        await context.eventually(async () => assert.equal(net(await a.countSince(policy, 'k', 3, epoch)), 3))
        assert.equal((await b.count(policy, 'k', 8)).epoch, epoch)
      }
    },
  },
  {
    title: 'a reset ends a cooldown and forgets its growth; a block by hand stays',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const growth = { factor: 2, max: 60 * MINUTE, memory: 60 * MINUTE }
      for (const policy of POLICIES) {
        const epoch = epochNow(context)
        assertAbout(await a.block(policy, 'k', 'exceeded', MINUTE, growth), MINUTE)
        assert.equal(await b.reset(policy, 'k', epoch), 0)
        assert.equal((await a.countSince(policy, 'k', 0, epoch)).blocked, 0)
        assert.equal(await a.block(policy, 'k', 'exceeded', MINUTE, growth), 0, 'it was exceeded before the reset')
        assertAbout(await a.exceed(policy, 'k', MINUTE, growth, epoch), MINUTE)
        await a.block(policy, 'k', 'set', 30 * MINUTE)
        assertAbout(await b.reset(policy, 'k', epoch + 20), 30 * MINUTE)
        assertAbout((await b.countSince(policy, 'k', 0, epoch + 20)).blocked, 30 * MINUTE)
      }
    },
  },
  {
    title: 'whether a block was set by hand is told by results and heartbeats, also once it was restored',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const [policy] = POLICIES as [StorePolicy]
      const told = async (): Promise<unknown> => (await b.beat(undefined, [policy])).blocks.map(({ key, manual }) => [key, manual]).sort()
      await a.block(policy, 'h', 'set', MINUTE)
      await a.block(policy, 'x', 'exceeded', MINUTE)
      await a.sync({ blocks: [{ policy, key: 'r', kind: 'restore', remaining: MINUTE, manual: true }] })
      assert.equal((await b.count(policy, 'h', 1)).manual, true)
      assert.equal((await b.count(policy, 'x', 1)).manual, undefined)
      assert.deepEqual(await told(), [
        ['h', true],
        ['r', true],
        ['x', undefined],
      ])
      await a.block(policy, 'h', 'lift', 0)
      await a.block(policy, 'h', 'exceeded', MINUTE)
      await a.block(policy, 'x', 'set', MINUTE)
      assert.deepEqual(await told(), [
        ['h', undefined],
        ['r', true],
        ['x', true],
      ])
    },
  },
  {
    title: 'heartbeats hand out resets, to nodes that start too, and of any key',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const [policy] = POLICIES as [StorePolicy]
      const { cursor } = await b.beat(undefined, [policy])
      const epoch = epochNow(context)
      const keys = [...HOSTILE_KEYS]
      await a.sync({ blocks: keys.map((key) => ({ policy, key, kind: 'reset', remaining: 0, epoch })) })
      for (const from of [cursor, undefined]) {
        const { blocks } = await b.beat(from, [policy])
        assert.deepEqual(blocks.map(({ key }) => key).sort(), keys.sort())
        assert.ok(blocks.every((block) => block.epoch === epoch && block.remaining === 0))
      }
    },
  },
  {
    title: 'resets and questions are announced to the other nodes, and totals tell the reset that they are of after',
    needs: ['announcements'],
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const policy = fixedPolicy({ id: 'announced', limit: 5 })
      await context.listening(a, b)
      const epoch = epochNow(context)
      await a.reset(policy, 'k', epoch)
      await context.eventually(() =>
        assert.deepEqual(b.announcements, [{ type: 'block', policyId: 'announced', key: 'k', remaining: 0, epoch }]),
      )
      await a.countSince(policy, 'k', 5, epoch)
      await a.sync({ entries: [{ policy, key: 'q', cells: [cell(context.ordinal(policy), 0)], ask: true }] })
      await context.eventually(() => {
        const total = b.announcements.findLast(({ type }) => type === 'total')
        assert.deepEqual(total, { type: 'total', policyId: 'announced', key: 'k', cells: [cell(context.ordinal(policy), 5)], epoch })
        const question = b.announcements.findLast(({ type }) => type === 'ask')
        assert.deepEqual(question, { type: 'ask', policyId: 'announced', key: 'q' })
      })
    },
  },
]
