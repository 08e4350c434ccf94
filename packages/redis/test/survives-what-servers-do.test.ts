import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { RedisServer, until } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { documentedUser } from './fixtures.ts'
import { POLICY, TestNode } from './test-node.ts'

let server: RedisServer
let admin: Redis
beforeAll(async () => {
  server = await RedisServer.start()
  admin = new Redis(server.port)
})
afterAll(async () => {
  admin.disconnect()
  await server.stop()
})

/** Commands that ran inside of scripts while `work` did. */
async function commandsDuring(work: () => Promise<unknown>): Promise<Record<string, number>> {
  await admin.config('RESETSTAT')
  await work()
  const calls: Record<string, number> = {}
  for (const [, name = '', count] of (await admin.info('commandstats')).matchAll(/cmdstat_([\w|]+):calls=(\d+)/g))
    calls[name] = Number(count)
  return calls
}

test('a script cache that was flushed is filled again', async () => {
  const node = new TestNode(redisStore(server.url, { namespace: 'script' }))
  expect(await node.count('k', 1)).toBe(1)
  await admin.script('FLUSH')
  expect(await node.count('k', 2)).toBe(2)
  await node.close()
})

test('connections that are killed come back within a second, and no count is lost or doubled', async () => {
  const node = new TestNode(redisStore(server.url, { namespace: 'killed' }))
  await node.count('k', 3)
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  const begun = performance.now()
  expect(await node.eventually(() => node.count('k', 4))).toBe(4)
  expect(performance.now() - begun).toBeLessThan(1000)
  await until(async () => Object.values(await admin.pubsub('NUMSUB', 'killed:1:0'))[1] === 1, 'the subscription is back', 5000)
  await node.close()
})

test('a full server refuses a batch whole', async () => {
  const node = new TestNode(redisStore(server.url, { namespace: 'full' }))
  expect(await node.count('k', 1)).toBe(1)
  await admin.config('SET', 'maxmemory', '1')
  await expect(node.count('k', 2)).rejects.toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
  await admin.config('SET', 'maxmemory', '0')
  expect(await node.count('k', 2)).toBe(2)
  await node.close()
})

test('a key-write takes three commands, and in a batch two', async () => {
  const node = new TestNode(redisStore(server.url, { namespace: 'commands' }))
  await node.count('warm', 1)
  // Both kinds of calls begin with TIME, GET and SET, and look once whether anything is blocked.
  const fixedPart = { evalsha: 1, time: 1, get: 1, zcard: 1 }
  expect(await commandsDuring(() => node.count('k', 1))).toMatchObject({ ...fixedPart, set: 3, mget: 1 })
  const steady = await commandsDuring(() => node.count('k', 2))
  expect(steady).toMatchObject({ ...fixedPart, set: 1, mget: 1, setrange: 1, incrby: 1 })
  expect(steady['pexpire']).toBeUndefined()
  const unchanged = await commandsDuring(() => node.count('k', 2))
  expect(unchanged).toMatchObject({ ...fixedPart, set: 1, mget: 1 })
  expect(unchanged['setrange'] ?? unchanged['incrby']).toBeUndefined()
  await node.close()
})

test('anyone can read a counter with GET', async () => {
  const node = new TestNode(redisStore(server.url, { namespace: 'readable' }))
  await node.count('GET /users', 2)
  await node.count('GET /users', 5)
  const [key = ''] = await admin.keys('readable:*:c:*')
  expect(key).toBe(`readable:{1.0.0}:c:fixed:GET%20/users:${node.ordinal}`)
  expect(await admin.get(key)).toBe('5')
  expect(await admin.pttl(key)).toBeGreaterThan(POLICY.ttl)
  await node.close()
})

test('the instance that is given is a template: neither used, changed nor closed', async () => {
  const client = new Redis({ port: server.port, lazyConnect: true, keyPrefix: 'mine:', db: 2 })
  const options = { ...client.options }
  const node = new TestNode(redisStore(client, { namespace: 'template' }))
  expect(await node.count('k', 1)).toBe(1)
  await node.close()
  expect(client.status).toBe('wait')
  expect(client.options).toEqual(options)
  await admin.select(2)
  expect((await admin.keys('*')).length).toBeGreaterThan(0)
  expect((await admin.keys('*')).every((key) => key.startsWith('template:'))).toBe(true)
  await admin.select(0)
})

test('a server that is absent at the start is used as soon as it is there', async () => {
  const late = await RedisServer.start()
  await late.kill()
  const node = new TestNode(redisStore(late.url))
  await expect(node.count('k', 1)).rejects.toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
  await late.start()
  expect(await node.eventually(() => node.count('k', 1), 1500)).toBe(1)
  await node.close()
  await late.stop()
})

test('a wrong password is an answer, not a crash', async () => {
  const locked = await RedisServer.start({ arguments: ['--requirepass', 'right'], cli: ['-a', 'right', '--no-auth-warning'] })
  const node = new TestNode(redisStore({ port: locked.port, password: 'wrong' }))
  await expect(node.count('k', 1)).rejects.toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
  await node.close()
  await locked.stop()
})

test('the permissions in the README suffice', async () => {
  await admin.call('ACL', 'SETUSER', ...documentedUser('acl'))
  const [a, b] = [1, 2].map(
    () => new TestNode(redisStore({ port: server.port, username: 'weir', password: 'secret' }, { namespace: 'acl' })),
  )
  if (a === undefined || b === undefined) throw new Error('no nodes')
  expect(await a.count('k', 0.5)).toBe(0.5)
  expect(await a.count('k', 1)).toBe(1)
  await b.beat()
  await until(async () => {
    const kind = b.announcements.length % 2 === 0 ? 'set' : 'lift'
    await a.connection.sync({ entries: [], blocks: [{ policy: POLICY, key: 'k', kind, remaining: 1000 }] })
    await b.beat()
    return b.announcements.length > 1
  }, 'blocks are announced')
  await Promise.all([a.close(), b.close()])
})

test('an open store does not keep a process alive', async () => {
  const program = `
    import { systemClock } from '@weir/core'
    import { redisStore } from './src/index.ts'
    const connection = redisStore(${JSON.stringify(server.url)}, { namespace: 'exit' }).open({ id: 'x', clock: systemClock, announced: () => {} })
    const reply = await connection.sync({ entries: [], blocks: [] })
    console.log(reply.time > 0)`
  const child = spawn(process.execPath, ['--import', 'tsx', '--conditions=@weir/source', '--input-type=module', '-e', program], {
    cwd: new URL('..', import.meta.url).pathname,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout?.on('data', (data) => {
    output += String(data)
  })
  expect(await once(child, 'close')).toEqual([0, null])
  expect(output).toBe('true\n')
})
