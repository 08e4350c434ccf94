import { faultProxy } from '@weir/testing'
import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { EtcdServer } from '@weir/tooling/etcd-servers'
import { until } from '@weir/tooling/redis-servers'
import { expect, test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

describeEtcd('a node and its etcd', () => {
  const here = ownServer()

  test('etcd is killed and comes back with its data: nothing counts as lost', async () => {
    const store = etcdStore(here.server.url, { namespace: freshNamespace(), timeout: PATIENT })
    const [a, b] = [new TestNode(store), new TestNode(store)]
    expect(await a.count('k', 5)).toBe(5)
    const { generation, cursor } = await a.beat(undefined)
    await b.block('blocked', 600_000)
    await here.server.kill()
    expect(await a.failure(() => a.count('k', 6))).toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
    await here.server.start()
    expect(await b.eventually(() => b.count('k', 2).catch(() => undefined))).toBe(7)
    const beat = await a.eventually(() => a.beat(cursor).catch(() => undefined))
    expect(beat.generation).toBe(generation)
    expect(beat.blocks.map(({ key }) => key)).toEqual(['blocked'])
    await Promise.all([a.close(), b.close()])
  })

  test('requests on connections that ended while they were idle are sent again', async () => {
    const proxy = await faultProxy({ port: Number(new URL(here.server.url).port) })
    const node = new TestNode(etcdStore(`http://127.0.0.1:${proxy.port}`, { namespace: freshNamespace(), timeout: PATIENT }))
    // Several connections, all of which become idle.
    expect(await Promise.all(['a', 'b', 'c'].map((key) => node.count(key, 1)))).toEqual([1, 1, 1])
    for (let taken = 2; taken < 7; taken++) {
      proxy.reset()
      // The process has not read the end of the connections yet.
      expect(await node.count('a', taken)).toBe(taken)
    }
    await node.close()
    await proxy.close()
  })

  test('etcd is absent at the start, and used as soon as it is there', async () => {
    await here.server.kill()
    const store = etcdStore(here.server.url, { namespace: freshNamespace(), timeout: PATIENT })
    const node = new TestNode(store)
    expect(await node.failure(() => node.count('k', 1))).toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
    await here.server.start()
    expect(await node.eventually(() => node.count('k', 1).catch(() => undefined))).toBe(1)
    await node.close()
  })

  test('etcd hangs: exchanges fail in time, and what came to it late lowers no count', async () => {
    const store = etcdStore(here.server.url, { namespace: freshNamespace(), timeout: 300 })
    const [a, b] = [new TestNode(store), new TestNode(store)]
    expect(await a.count('k', 9)).toBe(9)
    await here.server.pause()
    expect(await a.failure(() => a.count('k', 12))).toMatchObject({ code: 'WEIR_STORE_TIMEOUT' })
    expect(await a.failure(() => a.count('k', 15))).toMatchObject({ code: 'WEIR_STORE_TIMEOUT' })
    here.server.resume()
    expect(await a.eventually(() => a.count('k', 15).catch(() => undefined))).toBe(15)
    // Syncs that were in flight when it hung have ended by now, whether or not they reached etcd.
    expect(await a.count('k', 15)).toBe(15)
    expect(await b.eventually(() => b.count('k', 1).catch(() => undefined))).toBe(16)
    await Promise.all([a.close(), b.close()])
  })

  test('leases that somebody revokes cost what lived under them, until its node writes again', async () => {
    const store = etcdStore(here.server.url, { namespace: freshNamespace(), timeout: PATIENT })
    const [a, b] = [new TestNode(store), new TestNode(store)]
    await a.count('k', 5)
    await b.count('k', 2)
    const { leases = [] } = await here.server.ask('/v3/lease/leases', {})
    for (const { ID } of leases as readonly { readonly ID: string }[]) await here.server.ask('/v3/lease/revoke', { ID })
    expect(await a.count('k', 5)).toBe(5)
    expect(await b.count('k', 3)).toBe(8)
    await Promise.all([a.close(), b.close()])
  })

  test('what was compacted away under a watch is lost, and what comes later is heard', async () => {
    const proxy = await faultProxy({ port: Number(new URL(here.server.url).port) })
    const namespace = freshNamespace()
    const a = new TestNode(etcdStore(here.server.url, { namespace, timeout: PATIENT }))
    const b = new TestNode(etcdStore(`http://127.0.0.1:${proxy.port}`, { namespace, timeout: PATIENT }))
    const limited = { ...POLICY, id: 'limited', limit: 1 }
    let key = 0
    const heard = (): number => b.announcements.length
    const announceUntilHeard = async (): Promise<void> => {
      const before = heard()
      await until(async () => {
        await a.count(`k${key++}`, 1, limited)
        return heard() > before
      }, 'an announcement is heard')
    }
    await announceUntilHeard()
    proxy.set({ reject: true })
    proxy.reset()
    for (let i = 0; i < 5; i++) await a.count(`missed ${i}`, 1, limited)
    const { header } = await here.server.ask('/v3/kv/range', { key: 'AA==' })
    const { revision } = header as { readonly revision: string }
    await here.server.ask('/v3/kv/compaction', { revision })
    proxy.set({ reject: false })
    await announceUntilHeard()
    await Promise.all([a.close(), b.close()])
    await proxy.close()
  })

  test('one member is away: the next one is asked, in the same exchange where it rejects, else from the next on', async () => {
    const silent = await faultProxy({ port: Number(new URL(here.server.url).port) })
    silent.set({ halfOpen: true })
    const namespace = freshNamespace()
    const rejected = new TestNode(etcdStore(['http://127.0.0.1:1', here.server.url], { namespace, timeout: PATIENT }))
    expect(await rejected.count('k', 5)).toBe(5)
    const node = new TestNode(etcdStore([`http://127.0.0.1:${silent.port}`, here.server.url], { namespace, timeout: 200 }))
    expect(await node.failure(() => node.count('k', 2))).toMatchObject({ code: 'WEIR_STORE_TIMEOUT' })
    expect(await node.eventually(() => node.count('k', 2).catch(() => undefined))).toBe(7)
    await Promise.all([rejected.close(), node.close()])
    await silent.close()
  })
})

describeEtcd('a full etcd', () => {
  test('rejects what would be written, says why, and works again when its alarm is off', async () => {
    const server = await EtcdServer.start({ arguments: ['--quota-backend-bytes', '200000'] })
    const node = new TestNode(etcdStore(server.url, { namespace: freshNamespace(), timeout: PATIENT }))
    expect(await node.count('k', 1)).toBe(1)
    const value = Buffer.alloc(50_000).toString('base64')
    await until(async () => 'error' in (await server.ask('/v3/kv/put', { key: 'ZmlsbA==', value })), 'it is full')
    await until(async () => ((await server.ask('/v3/maintenance/alarm', {}))['alarms'] as unknown[])?.length > 0, 'it raises its alarm')
    const failure = await node.failure(() => node.count('k', 2))
    expect(failure).toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE', message: expect.stringContaining('database space exceeded') })
    const { header } = await server.ask('/v3/kv/range', { key: 'AA==' })
    await server.ask('/v3/kv/compaction', { revision: (header as { readonly revision: string }).revision, physical: true })
    await server.ask('/v3/maintenance/defragment', {})
    await server.ask('/v3/maintenance/alarm', {
      action: 'DEACTIVATE',
      alarm: 'NOSPACE',
      memberID: (header as { readonly member_id: string }).member_id,
    })
    expect(await node.eventually(() => node.count('k', 3).catch(() => undefined))).toBe(3)
    await node.close()
    await server.stop()
  })
})
