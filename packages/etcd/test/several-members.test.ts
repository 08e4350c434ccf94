import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { EtcdServer } from '@weir/tooling/etcd-servers'
import { until } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

/** Milliseconds for a reply of members that may have lost their leader: less than an election takes. */
const SHORT = 1_000
/** A policy whose every unit is announced. */
const LIMITED = { ...POLICY, id: 'limited', limit: 1 }

describeEtcd('a cluster of three members', () => {
  let members: EtcdServer[] = []
  beforeAll(async () => {
    members = await EtcdServer.startCluster(3)
  }, 60_000)
  afterAll(() => Promise.all(members.map((member) => member.stop())))

  /** Processes that each use another member at first, so that announcements pass between members. */
  function nodes(): TestNode[] {
    const namespace = freshNamespace()
    const urls = members.map(({ url }) => url)
    return urls.map((_, at) => new TestNode(etcdStore([...urls.slice(at), ...urls.slice(0, at)], { namespace, timeout: SHORT })))
  }

  async function leader(): Promise<EtcdServer> {
    const leads = await Promise.all(members.map((member) => member.leads()))
    return members[leads.indexOf(true)] as EtcdServer
  }

  test('nodes that ask different members count together', async () => {
    const [a, b, c] = nodes() as [TestNode, TestNode, TestNode]
    expect(await a.eventually(() => a.count('k', 5).catch(() => undefined))).toBe(5)
    expect(await b.eventually(() => b.count('k', 3).catch(() => undefined))).toBe(8)
    expect(await c.eventually(() => c.count('k', 1).catch(() => undefined))).toBe(9)
    let key = 0
    await until(async () => {
      await a.count(`k${key++}`, 1, LIMITED).catch(() => undefined)
      return b.announcements.length > 0 && c.announcements.length > 0
    }, 'all hear of what one counted')
    await Promise.all([a.close(), b.close(), c.close()])
  })

  test('its leader is killed: counts and blocks stay, none is lost, none counts twice', { timeout: 60_000 }, async () => {
    const all = nodes()
    const [a, b, c] = all as [TestNode, TestNode, TestNode]
    for (const node of all) await node.eventually(() => node.count('k', 2).catch(() => undefined))
    const { generation, cursor } = await a.eventually(() => a.beat(undefined).catch(() => undefined))
    expect(await b.eventually(() => b.block('blocked', 600_000).catch(() => undefined))).toBeGreaterThan(0)
    const lost = await leader()
    await lost.kill()
    // Each process sends the same count until it gets a reply, because an earlier write may have succeeded or not.
    await Promise.all(all.map((node) => node.eventually(() => node.count('k', 4).catch(() => undefined))))
    for (const node of all) expect(await node.eventually(() => node.count('k', 4).catch(() => undefined))).toBe(12)
    const beat = await a.eventually(() => a.beat(cursor).catch(() => undefined))
    expect(beat.generation).toBe(generation)
    expect(beat.blocks.map(({ key }) => key)).toEqual(['blocked'])
    await lost.start()
    expect(await c.eventually(() => c.count('k', 5).catch(() => undefined))).toBe(13)
    await Promise.all(all.map((node) => node.close()))
  })

  test('a minority is left: nothing is written, and it goes on once a second member is back', { timeout: 60_000 }, async () => {
    const [a] = nodes() as [TestNode]
    expect(await a.eventually(() => a.count('k', 5).catch(() => undefined))).toBe(5)
    const [first, second] = members as [EtcdServer, EtcdServer]
    await Promise.all([first.kill(), second.kill()])
    expect(await a.failure(() => a.count('k', 6))).toMatchObject({ code: expect.stringMatching(/^WEIR_STORE_(TIMEOUT|UNAVAILABLE)$/) })
    await second.start()
    expect(await a.eventually(() => a.count('k', 7).catch(() => undefined))).toBe(7)
    await first.start()
    await a.close()
  })
})

describeEtcd('an etcd that is restored from a backup', () => {
  const here = ownServer()

  test('has older counts: nodes notice that it did, and what they say again counts as before', async () => {
    const store = etcdStore(here.server.url, { namespace: freshNamespace(), timeout: PATIENT })
    const [a, b] = [new TestNode(store), new TestNode(store)]
    let key = 0
    await a.count('k', 5)
    const before = await a.beat(undefined)
    await here.server.kill()
    here.server.backUp()
    await here.server.start()
    expect(await a.eventually(() => a.count('k', 9).catch(() => undefined))).toBe(9)
    expect(await b.count('k', 3)).toBe(12)
    // These writes are lost with the restore. They are so many that etcd doesn't reach the old revision of the watch again during the test.
    for (let i = 0; i < 100; i++) await a.count(`k${key++}`, 1, LIMITED)
    await until(async () => {
      await a.count(`k${key++}`, 1, LIMITED)
      return b.announcements.length > 0
    }, 'what is announced is heard')
    const middle = await a.beat(before.cursor)
    await b.beat()
    expect(middle.generation).toBe(before.generation)
    await here.server.restore()
    const heard = b.announcements.length
    const after = await a.eventually(() => a.beat(middle.cursor).catch(() => undefined))
    expect(after.generation).not.toBe(middle.generation)
    expect(await a.count('k', 9)).toBe(9)
    expect(await b.count('k', 3)).toBe(12)
    // The watch's next revision, from before the loss, is now in etcd's future.
    await until(async () => {
      await b.beat().catch(() => undefined)
      await a.count(`k${key++}`, 1, LIMITED).catch(() => undefined)
      return b.announcements.length > heard
    }, 'what is announced is heard')
    await Promise.all([a.close(), b.close()])
  })
})
