import { serialize } from 'node:v8'
import { systemClock } from '@weir/core'
import { pack } from '@weir/core/hub'
import type { Announcement, LeaseAsk, Ordinal, StoreConnection, StorePolicy, SyncReply, SyncRequest } from '@weir/core/sync'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { durableObjectStore } from '../src/index.ts'
import { shardOf } from '../src/shards.ts'
import { FakeObjects } from './fake-objects.ts'

const policy: StorePolicy = { id: 'p', width: 3_600_000, cells: 1, limit: 10, hot: 5, ttl: 7_200_000 }
const ordinal = Math.floor(Date.now() / policy.width) as Ordinal
const lease: LeaseAsk = {
  ...{ ordinal, incarnation: 0, seq: 1, granted: 0, returned: 0, taken: 0, given: 0, cleared: 0, epoch: 0 },
  ...{ least: 4, waiting: 4, upTo: 4, limit: 10, nodes: 1, early: 1_000, lifetime: 4_000 },
}

let opened = 0
function connect(objects: FakeObjects, shards = 1): StoreConnection {
  return durableObjectStore(objects, { shards }).open({ id: `node-${++opened}`, clock: systemClock, announced: () => {} })
}

function sync(connection: StoreConnection, request: Partial<SyncRequest>): Promise<SyncReply> {
  return connection.sync({ entries: [], blocks: [], ...request })
}

/** Sets the clock of the objects. It stands still until the end of the test. */
const setClock = (time: number): void => void vi.useFakeTimers({ toFake: ['Date'], now: time })
afterEach(() => void vi.useRealTimers())

const heartbeat = (cursor?: string) => ({ ttl: 4_000, cursor, policies: [policy] })

describe('the object behind durableObjectStore', () => {
  test('after it was ended, blocks, leases and the log are as before, and its generation is new', async () => {
    const objects = new FakeObjects()
    const connection = connect(objects)
    const log = await connection.audit?.()
    await log?.add('ann unblocked k')
    await sync(connection, { blocks: [{ policy, key: 'manual', kind: 'set', remaining: 60_000 }] })
    await sync(connection, { blocks: [{ policy, key: 'lifted', kind: 'set', remaining: 60_000 }] })
    await sync(connection, { blocks: [{ policy, key: 'reset', kind: 'reset', remaining: 0, epoch: Date.now() }] })
    const first = await sync(connection, { entries: [{ policy, key: 'leased', cells: [], lease }], heartbeat: heartbeat() })
    expect(first.results[0]?.lease).toMatchObject({ granted: 4, free: 6 })
    await sync(connection, { blocks: [{ policy, key: 'lifted', kind: 'lift', remaining: 0 }] })

    objects.evict()
    const again = await sync(connection, { heartbeat: heartbeat(first.heartbeat?.cursor) })
    expect(again.heartbeat?.generation).not.toBe(first.heartbeat?.generation)
    const blocks = new Map(again.heartbeat?.blocks.map((block) => [block.key, block]))
    expect(blocks.get('manual')).toMatchObject({ manual: true, remaining: expect.closeTo(60_000, -4) })
    expect(blocks.get('lifted')?.remaining, 'a block that was lifted after the cursor').toBe(0)
    expect(blocks.get('reset')?.epoch).toBeGreaterThan(0)
    expect(await log?.list(10)).toEqual(['ann unblocked k'])

    const other = connect(objects)
    const asked = { ...lease, least: 9, waiting: 9, upTo: 9 }
    const reply = await sync(other, { entries: [{ policy, key: 'leased', cells: [], lease: asked }] })
    expect(reply.results[0]?.lease, 'the units of the first process are still its own').toMatchObject({ granted: 0, free: 6 })
  })

  test('a sync writes each changed row once, and counts write none', async () => {
    const objects = new FakeObjects()
    const connection = connect(objects)
    await sync(connection, { entries: [{ policy, key: 'k', cells: [{ ordinal, taken: 3, given: 0 }] }], heartbeat: heartbeat() })
    expect(objects.written).toBe(0)
    const keys = Array.from({ length: 300 }, (_, i) => `k${i}`)
    const changes = keys.flatMap((key) => [60_000, 30_000].map((remaining) => ({ policy, key, kind: 'set' as const, remaining })))
    await sync(connection, { blocks: changes })
    expect(objects.written).toBe(300)
    expect(objects.rows()).toHaveLength(300)
  })

  test('expired rows are deleted, by a sync and when the object starts', async () => {
    for (const end of [(objects: FakeObjects) => objects.evict(), () => {}]) {
      const objects = new FakeObjects()
      const connection = connect(objects)
      const blocks = ['a', 'b'].map((key) => ({ policy, key, kind: 'set' as const, remaining: 100 }))
      await sync(connection, { blocks })
      expect(objects.rows()).toHaveLength(2)
      // The hub searches for expired data once a second.
      await new Promise((resolve) => setTimeout(resolve, 1_100))
      end(objects)
      await sync(connection, { heartbeat: heartbeat() })
      expect(objects.rows()).toEqual([])
    }
  })

  test('rows of another layout, and rows that can not be read, are ignored', async () => {
    const objects = new FakeObjects()
    objects.storages.set('weir 0', new Map<string, unknown>([['weir/0/1', { type: 'block' }], ...garbage()]))
    const connection = connect(objects)
    expect((await sync(connection, { heartbeat: heartbeat() })).heartbeat?.blocks).toEqual([])
    expect([...(objects.storages.get('weir 0')?.keys() ?? [])]).toEqual(['weir/0/1'])
  })

  test('any message that can not be read gets no reply, and the object continues', async () => {
    const objects = new FakeObjects()
    const stub = objects.get('weir 0' as never) as Record<string, (...values: unknown[]) => Promise<unknown>>
    await fc.assert(
      fc.asyncProperty(fc.anything(), fc.anything(), fc.anything(), async (a, b, c) => {
        for (const method of ['sync', 'decide', 'audit', 'leave']) {
          await stub[method]?.(a, b, c)
          await stub[method]?.('node', b, c)
        }
      }),
      { numRuns: 300 },
    )
    const good = pack({ entries: [], blocks: [], heartbeat: heartbeat() })
    expect(await stub['sync']?.('node', good, undefined)).toMatchObject({ reply: { heartbeat: { nodes: 1 } } })
    expect(await stub['sync']?.('no id', good, undefined)).toBeUndefined()
  })

  test('the number of processes is bounded', async () => {
    const objects = new FakeObjects()
    const stub = objects.get('weir 0' as never) as { sync(...values: unknown[]): Promise<unknown> }
    const good = pack({ entries: [], blocks: [], heartbeat: heartbeat() })
    for (let i = 0; i < 4_096; i++) await stub.sync(`n${i}`, good, undefined)
    expect(await stub.sync('one-more', good, undefined)).toBeUndefined()
    expect(await stub.sync('n0', good, undefined)).toBeDefined()
    // All of them ended without a message, so no sync of theirs removes them.
    setClock(Date.now() + 10_000)
    expect(await stub.sync('one-more', good, undefined)).toBeDefined()
  })

  test('a leased key accepts no more processes than fit into its row, and goes on with the others', async () => {
    const objects = new FakeObjects()
    const ask = async (node: string) => {
      const stub = objects.get('weir 0' as never) as { sync(...values: unknown[]): Promise<{ readonly reply: SyncReply }> }
      const request = { entries: [{ policy, key: 'k', cells: [], lease: { ...lease, limit: 1_000_000 } }], blocks: [] }
      return (await stub.sync(node, pack(request), undefined)).reply.results[0]?.lease
    }
    expect(await ask('n'.repeat(64))).toBeDefined()
    const [stored] = objects.rows() as [{ readonly record: { readonly rows: Map<string, object> } }]
    const { rows } = stored.record
    const row = rows.values().next().value
    const open = Array.from({ length: 64 }, (_, i) => ({ due: Date.now() + 60_000 + i, back: 1 }))
    for (let i = 0; i < 694; i++) rows.set(`${i}-${'n'.repeat(60)}`, { ...row, open })
    objects.evict()
    expect(await ask('the-last-one')).toBeDefined()
    expect(serialize(objects.rows()[0]).length).toBeLessThan(2_000_000)
    for (const another of ['a', 'b', 'c']) await ask(another)
    expect(await ask('too-many')).toBeUndefined()
    expect(await ask('n'.repeat(64)), 'a process that it has already').toBeDefined()
  })

  test('entries of the log that arrive in one millisecond all survive its end', async () => {
    const objects = new FakeObjects()
    const log = await connect(objects).audit?.()
    setClock(Date.now())
    for (const entry of ['first', 'second', 'third']) await log?.add(entry)
    objects.evict()
    expect([...((await log?.list(10)) ?? [])].sort()).toEqual(['first', 'second', 'third'])
  })

  test('if its clock was set back before it starts again, processes still receive its blocks and announcements', async () => {
    const objects = new FakeObjects()
    const announced: string[] = []
    const options = { id: 'listener', clock: systemClock, announced: (one: Announcement) => void announced.push(one.key) }
    const listener = durableObjectStore(objects).open(options)
    const first = await sync(listener, { heartbeat: heartbeat() })
    await sync(listener, {})
    objects.evict()
    setClock(Date.now() - 3_600_000)
    const block = (key: string) => sync(connect(objects), { blocks: [{ policy, key, kind: 'set', remaining: 60_000 }] })
    await block('a')
    const again = await sync(listener, { heartbeat: heartbeat(first.heartbeat?.cursor) })
    expect(again.heartbeat?.blocks.map(({ key }) => key)).toEqual(['a'])
    expect(announced).toEqual(['a'])
    await block('b')
    await sync(listener, {})
    expect(announced).toEqual(['a', 'b'])
  })
})

describe('several objects', () => {
  const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const entries = keys.map((key) => ({ policy, key, cells: [{ ordinal, taken: 1, given: 0 }] }))

  test('keys are spread evenly', () => {
    const counts = [0, 0, 0, 0]
    for (let i = 0; i < 4_000; i++) counts[shardOf(`10.0.${i >> 8}.${i & 255}`, 4)]! += 1
    for (const count of counts) expect(count).toBeGreaterThan(800)
  })

  test('if one object is down, only its keys have no result, and news of the others arrive', async () => {
    const objects = new FakeObjects()
    const connection = connect(objects, 3)
    const first = await sync(connection, { entries, heartbeat: heartbeat() })
    expect(first.results.map((result) => result?.cells[0]?.taken)).toEqual(keys.map(() => 1))
    objects.down.add('weir 1')
    const request = { entries, blocks: entries.map(({ key }) => ({ policy, key, kind: 'set' as const, remaining: 9_000 })) }
    const reply = await sync(connection, { ...request, heartbeat: heartbeat(first.heartbeat?.cursor) })
    const isUp = keys.map((key) => shardOf(key, 3) !== 1)
    expect(isUp).toContain(false)
    expect(reply.results.map((result) => result !== undefined)).toEqual(isUp)
    expect(reply.blocks.map((left) => left !== undefined)).toEqual(isUp)
    expect(reply.heartbeat?.generation).toBe(first.heartbeat?.generation)

    objects.down.clear()
    const other = connect(objects, 3)
    await sync(other, request)
    const later = await sync(connection, { heartbeat: heartbeat(reply.heartbeat?.cursor) })
    expect(later.heartbeat?.blocks.map(({ key }) => key).sort(), 'also blocks of the object that was down').toEqual(keys)
    objects.down.add('weir 1')
    const its = entries.filter(({ key }) => shardOf(key, 3) === 1)
    expect((await sync(connection, { entries: its })).results, 'the store is not down').toEqual(its.map(() => undefined))
    for (const shard of [0, 1, 2]) objects.down.add(`weir ${shard}`)
    await expect(sync(connection, { entries: its })).rejects.toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
    await expect(sync(connection, { entries })).rejects.toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
  })

  test('if one object hangs, the keys of the others do not wait for its timeout', async () => {
    const objects = new FakeObjects()
    const store = durableObjectStore(objects, { shards: 3, timeout: '60s' })
    const connection = store.open({ id: 'n', clock: systemClock, announced: () => {} })
    objects.hanging.add('weir 1')
    const reply = await sync(connection, { entries, heartbeat: heartbeat() })
    expect(reply.results.map((result) => result !== undefined)).toEqual(keys.map((key) => shardOf(key, 3) !== 1))
  })
})

describe('options', () => {
  test.each<[unknown, unknown, RegExp]>([
    ['', {}, /Option "binding"/],
    [undefined, {}, /Option "binding" is undefined\. Use the name of a Durable Object binding such as "WEIR"/],
    [{}, {}, /Option "binding"/],
    ['WEIR', { shards: 0 }, /Option "shards" is 0\. Use a whole number from 1 to 64/],
    ['WEIR', { timeout: '1h' }, /Option "timeout"/],
    ['WEIR', { shard: 2 }, /Unknown option "shard"/],
  ])('durableObjectStore(%o, %o) throws', (binding, options, message) => {
    expect(() => durableObjectStore(binding as string, options as never)).toThrow(message)
  })

  test('outside of Workers, and without the binding, syncs fail with the lines to add', async () => {
    const connection = durableObjectStore('WEIR').open({ id: 'n', clock: systemClock, announced: () => {} })
    await expect(sync(connection, {})).rejects.toThrow(/no Durable Object binding "WEIR"\. Add to wrangler\.jsonc: "durable_objects"/)
  })
})

function garbage(): [string, unknown][] {
  const record = { out: 0, used: 0, tail: false, quietUntil: 0, epoch: 0, earliest: 0, rows: new Map([['node', {}]]) }
  const times = { until: Date.now() + 60_000, newsUntil: 0 }
  const page = { type: 'lease', name: 'n', policyId: 'p', key: 'k', ordinal, record, ...times, lost: false }
  return [page, undefined, null, 7, {}, { type: 'lease' }, { type: 'block', policyId: 'p' }].map((row, i) => [`weir/1/${i}`, row])
}
