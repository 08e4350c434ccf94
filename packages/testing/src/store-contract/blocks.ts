import assert from 'node:assert/strict'
import type { ContractCase } from './case.ts'
import { assertAbout, type ContractNode, fixedPolicy } from './context.ts'
import { HOSTILE_KEYS } from './counts.ts'

const policy = fixedPolicy()
const other = fixedPolicy({ id: 'other' })
const MINUTE = 60_000

/** Blocks of keys. */
export const blockCases: readonly ContractCase[] = [
  {
    title: 'the first block for exceeding the limit decides when a block ends',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      assertAbout(await a.block(policy, 'k', 'exceeded', MINUTE), MINUTE)
      assertAbout(await b.block(policy, 'k', 'exceeded', 60 * MINUTE), MINUTE)
      assertAbout((await b.count(policy, 'k', 0)).blocked, MINUTE)
      assert.equal((await b.count(policy, 'another', 0)).blocked, 0)
      assert.equal((await b.count(other, 'k', 0)).blocked, 0)
    },
  },
  {
    title: 'a block by hand replaces what is there, longer or shorter',
    async run(context) {
      const node = await context.node()
      await node.block(policy, 'k', 'exceeded', MINUTE)
      assertAbout(await node.block(policy, 'k', 'set', 60 * MINUTE), 60 * MINUTE)
      assertAbout(await node.block(policy, 'k', 'set', 30 * MINUTE), 30 * MINUTE)
      assertAbout((await node.count(policy, 'k', 1)).blocked, 30 * MINUTE)
    },
  },
  {
    title: 'a restored block never shortens one',
    async run(context) {
      const node = await context.node()
      assertAbout(await node.block(policy, 'k', 'restore', MINUTE), MINUTE)
      assertAbout(await node.block(policy, 'k', 'restore', 30 * MINUTE), 30 * MINUTE)
      assertAbout(await node.block(policy, 'k', 'restore', MINUTE), 30 * MINUTE)
    },
  },
  {
    title: 'a lifted block is over, and exceeding the limit again begins another',
    async run(context) {
      const node = await context.node()
      await node.block(policy, 'k', 'set', 60 * MINUTE)
      assert.equal(await node.block(policy, 'k', 'lift', 0), 0)
      assert.equal((await node.count(policy, 'k', 0)).blocked, 0)
      assertAbout(await node.block(policy, 'k', 'exceeded', MINUTE), MINUTE)
    },
  },
  {
    title: 'a block ends by itself',
    async run(context) {
      const node = await context.node()
      assert.ok((await node.block(policy, 'k', 'exceeded', 100)) > 0)
      await context.eventually(async () => assert.equal((await node.count(policy, 'k', 0)).blocked, 0))
      assertAbout(await node.block(policy, 'k', 'exceeded', MINUTE), MINUTE)
    },
  },
  {
    title: 'blocks of a repeated offender grow, whichever node reports him, up to their limit',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const growth = { factor: 2, max: 5 * MINUTE, memory: 60 * MINUTE }
      for (const [node, minutes] of [
        [a, 1],
        [b, 2],
        [a, 4],
        [b, 5],
      ] as const) {
        assertAbout(await node.block(policy, 'k', 'exceeded', MINUTE, growth), minutes * MINUTE)
        assertAbout(await node.block(policy, 'k', 'exceeded', MINUTE, growth), minutes * MINUTE)
        await node.block(policy, 'k', 'lift', 0)
      }
      assertAbout(await a.block(policy, 'another', 'exceeded', MINUTE, growth), MINUTE)
    },
  },
  {
    title: 'a change of a block shows in the results of the same exchange',
    async run(context) {
      const node = await context.node()
      const reply = await node.sync({
        entries: [{ policy, key: 'k', cells: [] }],
        blocks: [{ policy, key: 'k', kind: 'exceeded', remaining: MINUTE }],
      })
      assertAbout(reply.results[0]?.blocked ?? 0, MINUTE)
    },
  },
  {
    title: 'heartbeats hand out what was blocked or lifted since the last one',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await a.block(policy, 'first', 'exceeded', MINUTE)
      await a.block(other, 'unasked', 'exceeded', MINUTE)
      const start = await b.beat(undefined, [policy])
      assert.deepEqual(
        start.blocks.map(({ policyId, key }) => [policyId, key]),
        [['fixed', 'first']],
      )
      assertAbout(start.blocks[0]?.remaining ?? 0, MINUTE)

      const quiet = await b.beat(start.cursor, [policy])
      assert.deepEqual(quiet.blocks, [])
      await a.block(policy, 'second', 'set', MINUTE)
      await a.block(policy, 'first', 'lift', 0)
      const changed = await b.beat(quiet.cursor, [policy])
      assert.deepEqual(changed.blocks.map(({ key, remaining }) => [key, remaining > 0]).sort(), [
        ['first', false],
        ['second', true],
      ])
      assert.deepEqual((await b.beat(changed.cursor, [policy])).blocks, [])
      const again = await b.beat(quiet.cursor, [policy])
      assert.equal(again.blocks.length, 2, 'an old cursor hears the same again')
      assert.deepEqual(
        (await a.beat(undefined, [policy])).blocks.map(({ key }) => key),
        ['second'],
      )
    },
  },
  {
    title: 'a shortened block stays in the list until the longer one would have ended',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await a.block(policy, 'k', 'set', 60 * MINUTE)
      const { cursor } = await b.beat(undefined, [policy])
      await a.block(policy, 'k', 'set', 50)
      await context.eventually(async () => assert.equal((await a.count(policy, 'k', 0)).blocked, 0))
      assert.deepEqual((await b.beat(cursor, [policy])).blocks, [{ policyId: 'fixed', key: 'k', remaining: 0 }])
    },
  },
  {
    title: 'thousands of blocks reach a starting node',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const names = Array.from({ length: 3000 }, (_, i) => `key ${String(i).padStart(4, '0')}`)
      // So many blocks may take longer than the store's own timeout while other tests run.
      await context.eventually(() => a.sync({ blocks: names.map((key) => ({ policy, key, kind: 'exceeded', remaining: 60 * MINUTE })) }))
      const { blocks } = await context.eventually(() => b.beat(undefined, [policy]))
      assert.deepEqual(blocks.map(({ key }) => key).sort(), names)
    },
  },
  {
    title: 'blocks of hostile keys come back as they were',
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await a.sync({ blocks: HOSTILE_KEYS.map((key) => ({ policy, key, kind: 'exceeded', remaining: MINUTE })) })
      const { blocks } = await b.beat(undefined, [policy])
      assert.deepEqual(blocks.map(({ key }) => key).sort(), [...HOSTILE_KEYS].sort())
    },
  },
  {
    title: 'blocks that were lost are there again when a node restores them',
    needs: ['lose'],
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await a.block(policy, 'k', 'set', MINUTE)
      const { cursor, generation } = await b.beat(undefined, [policy])
      await context.fixture.lose?.()
      await context.eventually(async () => assert.notEqual((await b.beat(cursor, [policy])).generation, generation))
      const lost = await b.beat(cursor, [policy])
      await context.eventually(() => a.block(policy, 'k', 'restore', MINUTE))
      await context.eventually(async () => {
        assert.deepEqual(
          (await b.beat(lost.cursor, [policy])).blocks.map(({ key }) => key),
          ['k'],
        )
      })
    },
  },
]
