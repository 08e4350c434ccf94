import { type Algorithm, fixedWindow } from '@weir/core'
import type { DecidedPolicy, StorePolicy, SyncEntry } from '@weir/core/sync'
import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { expect, test } from 'vitest'
import { postgresStore } from '../src/index.ts'
import { describe, freshSchema, sharedServer } from './server.ts'

const HOUR = 3_600_000
const WINDOW: StorePolicy = { ...POLICY, id: 'window', cells: 4 }
const BUCKET: StorePolicy = { ...POLICY, id: 'bucket', drain: 1 }
const POLICIES = [POLICY, WINDOW, BUCKET]

describe('rows that somebody else has changed', () => {
  const here = sharedServer()

  const entriesOf = (node: TestNode, taken: number): SyncEntry[] =>
    POLICIES.flatMap((policy) =>
      ['a', 'b', 'c'].map((key) => ({ policy, key, cells: [{ ordinal: node.ordinal, taken, given: 0, level: 0, rejected: 0 }] })),
    )

  test.each([
    ['cells', 'nodes', `jsonb_build_object('NODE', 'x')`],
    ['cells', 'nodes', `jsonb_build_object('NODE', '[1e400, {}]'::jsonb)`],
    ['cells', 'taken', `'NaN'`],
    ['buckets', 'nodes', `jsonb_build_object('NODE', jsonb_build_object('ORDINAL', '["x"]'::jsonb))`],
    ['buckets', 'group_taken', `'{{1},{2}}'`],
    ['buckets', 'floor_ordinal', `-9223372036854775808`],
    ['buckets', 'written_in', `-9223372036854775808`],
    ['blocks', 'ends', `'NaN'`],
    ['blocks', 'epoch', `'Infinity'`],
  ])('fail alone, and are none of the other keys’ business: %s.%s = %s', async (table, column, value) => {
    const schema = freshSchema()
    const node = new TestNode(postgresStore(here.server.url, { schema, timeout: 30_000 }))
    const exchange = (taken: number) =>
      node.connection.sync({
        entries: entriesOf(node, taken),
        blocks: ['a', 'b', 'c'].map((key) => ({ policy: POLICY, key, kind: 'set', remaining: HOUR })),
        heartbeat: { ttl: 60_000, cursor: '', policies: POLICIES },
      })
    await exchange(2)
    const changed = value.replace('NODE', node.id).replace('ORDINAL', String(node.ordinal))
    await here.server.sql(`UPDATE ${schema}.${table} SET ${column} = ${changed} WHERE key = 'b'`)
    for (const taken of [3, 4]) {
      const { results, blocks, heartbeat } = await exchange(taken)
      for (const [i, { key }] of entriesOf(node, taken).entries()) if (key !== 'b') expect(results[i]?.cells.at(-1)?.taken, key).toBe(taken)
      for (const place of [0, 2]) expect(blocks[place]).toBeGreaterThan(0)
      expect(heartbeat?.nodes).toBe(1)
    }
    // Removes the key's rows, which can't be read.
    await here.server.sql(`DELETE FROM ${schema}.${table} WHERE key = 'b'`)
    const { results, blocks } = await exchange(5)
    expect(results.map((result) => result?.cells.at(-1)?.taken)).toEqual(POLICIES.flatMap(() => [5, 5, 5]))
    for (const left of blocks) expect(left).toBeGreaterThan(0)
    await node.close()
  })

  test('are answered by nobody where the store decides, and the requests of other keys that come with them are', async () => {
    const schema = freshSchema()
    const node = new TestNode(postgresStore(here.server.url, { schema, timeout: 30_000 }))
    const step = fixedWindow().step as NonNullable<Algorithm['step']>
    const options = { name: 'p', id: 'fixed', limit: 40, interval: HOUR }
    const policy: DecidedPolicy = { id: 'fixed', step, parameters: step.parameters(options as never) }
    const ask = () =>
      Promise.all(
        ['a', 'b', 'c'].map((key) =>
          node.take(policy, key, 1, 40).then(
            (verdict) => verdict?.allowed,
            () => 'failed',
          ),
        ),
      )
    await node.count('k', 1)
    expect(await ask()).toEqual([true, true, true])
    for (const [column, value] of [
      // The process overwrites invalid values that only it reads.
      ['sequences', `'"x"'::jsonb`],
      ['version', '9223372036854775807'],
    ]) {
      await here.server.sql(`UPDATE ${schema}.states SET ${column} = ${value} WHERE key = 'b'`)
      const [a, b, c] = await ask()
      expect([a, b === true, c]).toEqual([true, false, true])
      await here.server.sql(`DELETE FROM ${schema}.states WHERE key = 'b'`)
      await node.eventually(async () => (String(await ask()) === 'true,true,true' ? true : undefined))
    }
    await node.close()
  })
})
