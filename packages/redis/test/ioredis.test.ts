import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { outputOf, PATIENT } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()

/** Returns the commands that ran inside scripts during `work`. */
async function commandsDuring(work: () => Promise<unknown>): Promise<Record<string, number>> {
  await here.admin.config('RESETSTAT')
  await work()
  const calls: Record<string, number> = {}
  for (const [, name = '', count] of (await here.admin.info('commandstats')).matchAll(/cmdstat_([\w|]+):calls=(\d+)/g))
    calls[name] = Number(count)
  return calls
}

test('a key-write takes three commands, and in a batch two', async () => {
  const node = new TestNode(redisStore(here.server.url, { ...PATIENT, namespace: 'commands' }))
  await node.count('warm', 1)
  // Both kinds of calls begin with TIME, GET and SET, and check once if any key is blocked.
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
  const node = new TestNode(redisStore(here.server.url, { ...PATIENT, namespace: 'readable' }))
  await node.count('GET /users', 2)
  await node.count('GET /users', 5)
  const [key = ''] = await here.admin.keys('readable:*:c:*')
  expect(key).toBe(`readable:{1.0.0}:c:fixed:GET%20/users:${node.ordinal}`)
  expect(await here.admin.get(key)).toBe('5')
  expect(await here.admin.pttl(key)).toBeGreaterThan(POLICY.ttl)
  await node.close()
})

test('the instance that is given is a template: neither used, changed nor closed', async () => {
  const client = new Redis({ port: here.server.port, lazyConnect: true, keyPrefix: 'mine:', db: 2 })
  const options = { ...client.options }
  const node = new TestNode(redisStore(client, { ...PATIENT, namespace: 'template' }))
  expect(await node.count('k', 1)).toBe(1)
  await node.close()
  expect(client.status).toBe('wait')
  expect(client.options).toEqual(options)
  await here.admin.select(2)
  expect((await here.admin.keys('*')).length).toBeGreaterThan(0)
  expect((await here.admin.keys('*')).every((key) => key.startsWith('template:'))).toBe(true)
  await here.admin.select(0)
})

test('a server that reads a large dump holds no process up once the store is closed', async () => {
  const asked: string[] = []
  const loading = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const command of String(data).split(/(?=\*\d+\r\n\$)/)) {
        asked.push(command)
        const info = 'loading:1\r\nloading_eta_seconds:60\r\n'
        socket.write(/\r\ninfo\r\n/i.test(command) ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n')
      }
    })
  }).listen(0, '127.0.0.1')
  await once(loading, 'listening')
  const { port } = loading.address() as AddressInfo
  const program = `
    import { setTimeout as sleep } from 'node:timers/promises'
    import { systemClock } from '@weir/core'
    import { redisStore } from './src/index.ts'
    const connection = redisStore('redis://127.0.0.1:${port}', { namespace: 'exit' }).open({ id: 'x', clock: systemClock, announced: () => {} })
    await connection.sync({ entries: [], blocks: [] }).catch(() => {})
    await connection.close()
    await sleep(1_000)
    console.log(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length)`
  const output = await outputOf(program)
  loading.close()
  expect(asked.filter((command) => /info/i.test(command)).length).toBeGreaterThan(0)
  expect(output).toBe('0\n')
})
