import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { RedisServer, until } from '@weir/tooling/redis-servers'
import { describe, expect, test } from 'vitest'
import { createStore } from './clients.ts'
import { documentedUser, outputOf } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()

describe.each(Object.entries(createStore))('%s', (name, open) => {
  const namespaceOf = (what: string) => `${what}-${name.replace(' ', '-')}`

  test('connections that are killed come back, and no count is lost or doubled', async () => {
    const namespace = namespaceOf('killed')
    const node = new TestNode(open(here.server, namespace))
    await node.count('k', 3)
    await here.server.command('client', 'kill', 'type', 'normal', 'skipme', 'yes')
    await here.server.command('client', 'kill', 'type', 'pubsub')
    expect(await node.eventually(() => node.count('k', 4))).toBe(4)
    const subscribers = async () => (await here.server.command('pubsub', 'numsub', `${namespace}:1:0`)).trim().split('\n').at(-1)
    await until(async () => (await subscribers()) === '1', 'the subscription is back', 5000)
    await node.close()
  })

  test('a script cache that was flushed is filled again', async () => {
    const node = new TestNode(open(here.server, namespaceOf('script')))
    expect(await node.count('k', 1)).toBe(1)
    await here.server.command('script', 'flush')
    expect(await node.count('k', 2)).toBe(2)
    await node.close()
  })

  test('a server that is absent at the start is used as soon as it is there', async () => {
    const late = await RedisServer.start()
    await late.kill()
    const node = new TestNode(open(late, namespaceOf('late')))
    await expect(node.count('k', 1)).rejects.toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
    await late.start()
    expect(await node.eventually(() => node.count('k', 1), 1500)).toBe(1)
    await node.close()
    await late.stop()
  })

  test('a primary that has become a replica is left', async () => {
    const [primary, replica] = [await RedisServer.start(), await RedisServer.start()]
    const node = new TestNode(open(primary, namespaceOf('primary')))
    expect(await node.count('k', 1)).toBe(1)
    await primary.command('replicaof', '127.0.0.1', String(replica.port))
    // The client may connect again before any later command.
    const before = await primary.command('info', 'stats')
    await expect(
      node.eventually(async () =>
        node.count('k', 2).then(
          () => undefined,
          (error: unknown) => String(error),
        ),
      ),
    ).resolves.toContain('READONLY')
    await primary.command('replicaof', 'no', 'one')
    expect(await node.eventually(() => node.count('k', 2))).toBe(2)
    const made = (info: string) => Number(/total_connections_received:(\d+)/.exec(info)?.[1])
    // The two commands since then opened two connections.
    expect(made(await primary.command('info', 'stats'))).toBeGreaterThan(made(before) + 2)
    await node.close()
    await Promise.all([primary.stop(), replica.stop()])
  })

  test('a full server rejects a batch whole', async () => {
    const full = await RedisServer.start()
    const node = new TestNode(open(full, namespaceOf('full')))
    expect(await node.count('k', 1)).toBe(1)
    await full.command('config', 'set', 'maxmemory', '1')
    await expect(node.count('k', 2)).rejects.toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
    await full.command('config', 'set', 'maxmemory', '0')
    expect(await node.count('k', 2)).toBe(2)
    await node.close()
    await full.stop()
  })

  test('a wrong password is an answer, not a crash', async () => {
    const locked = await RedisServer.start({ arguments: ['--requirepass', 'right'], admin: { password: 'right' } })
    const node = new TestNode(open(locked, namespaceOf('locked'), { password: 'wrong' }))
    await expect(node.count('k', 1)).rejects.toMatchObject({
      code: 'WEIR_STORE_UNAVAILABLE',
      message: expect.stringContaining('WRONGPASS'),
    })
    await node.close()
    await locked.stop()
  })

  test('the permissions in the README suffice', async () => {
    const namespace = namespaceOf('acl')
    await here.server.command('acl', 'setuser', ...documentedUser(namespace))
    const store = open(here.server, namespace, { username: 'weir', password: 'secret' })
    const [a, b] = [new TestNode(store), new TestNode(store)]
    expect(await a.count('k', 0.5)).toBe(0.5)
    expect(await a.count('k', 1)).toBe(1)
    expect((await b.beat()).nodes).toBe(1)
    await until(async () => {
      const kind = b.announcements.length % 2 === 0 ? 'set' : 'lift'
      await a.connection.sync({ entries: [], blocks: [{ policy: POLICY, key: 'k', kind, remaining: 1000 }] })
      await b.beat()
      return b.announcements.length > 1
    }, 'blocks are announced')
    await (await a.connection.audit?.())?.add('an action')
    expect(await (await b.connection.audit?.())?.list(10)).toEqual(['an action'])
    await Promise.all([a.close(), b.close()])
  })

  test('an open store does not keep a process alive, whether or not there is a server', async () => {
    const program = `
      import { systemClock } from '@weir/core'
      import { createStore } from './test/clients.ts'
      const at = (url) => createStore[${JSON.stringify(name)}]({ url }, 'exit').open({ id: 'x', clock: systemClock, announced: () => {} })
      const reply = await at(${JSON.stringify(here.server.url)}).sync({ entries: [], blocks: [] })
      const failed = await at('redis://127.0.0.1:1').sync({ entries: [], blocks: [] }).catch(({ code }) => code)
      console.log(reply.time > 0, failed)`
    expect(await outputOf(program)).toBe('true WEIR_STORE_UNAVAILABLE\n')
  })
})
