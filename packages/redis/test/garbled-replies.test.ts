import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { watchUncaught } from '@weir/testing/store-tests/uncaught'
import { until } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { redisStore } from '../src/index.ts'

vi.setConfig({ testTimeout: 30_000 })

/** Invalid parts of a reply. */
const WRONG = ['$-1\r\n', '_\r\n', ':7\r\n', '$0\r\n\r\n', '*0\r\n', '>1\r\n_\r\n']
const KINDS = ['subscribe', 'unsubscribe', 'message', 'pmessage', 'smessage']
const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`

/** Replies of each kind, as arrays and as pushes: with missing parts, null parts, and parts of another type. */
const GARBLED = [
  ...WRONG,
  '*-1\r\n',
  '>0\r\n',
  '#t\r\n',
  '+\r\n',
  '+OK\r\n',
  '-ERR no\r\n',
  '+1700000000.1 [0 127.0.0.1:1] "get"\r\n',
  ...['*', '>'].flatMap((type) => [
    ...WRONG.map((part) => `${type}3\r\n${part}${part}${part}`),
    ...['monitor', 'invalidate', '__proto__'].map((kind) => `${type}2\r\n${bulk(kind)}$-1\r\n`),
    ...KINDS.flatMap((kind) => [
      `${type}1\r\n${bulk(kind)}`,
      `${type}2\r\n${bulk(kind)}${bulk('x')}`,
      ...WRONG.flatMap((part) => [
        `${type}2\r\n${bulk(kind)}${part}`,
        `${type}3\r\n${bulk(kind)}${part}:1\r\n`,
        `${type}3\r\n${bulk(kind)}${bulk('x')}${part}`,
      ]),
    ]),
  ]),
]

/** The places of garbled replies: in place of the reply to a subscription, a script or a query of a Sentinel, or right after it. */
const PLACES = ['subscription', 'behind a subscription', 'script', 'behind a script', 'sentinel', 'behind a sentinel'] as const
type Place = (typeof PLACES)[number]

/** A server that completes the handshake. A connection's name, or its password, contains the number of its garbled reply. */
let server: Server
let place: Place
const sockets = new Set<Socket>()
/** The numbers of the garbled replies that were sent. */
const sent = new Set<number>()
const uncaught = watchUncaught()

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    let shape = -1
    socket.on('data', (data) => {
      for (const command of String(data).split(/(?=\*\d+\r\n\$)/)) {
        shape = Number(/\r\ngarbled-(\d+)\r\n/.exec(command)?.[1] ?? shape)
        socket.write(answer(command, shape))
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
  server.close()
})

const port = (): number => (server.address() as AddressInfo).port

function answer(command: string, shape: number): string {
  if (/\r\nhello\r\n/i.test(command)) return `%1\r\n${bulk('proto')}:3\r\n`
  if (/\r\ninfo\r\n/i.test(command)) return '$9\r\nloading:0\r\n'
  const [asked, usual] = /\r\nsubscribe\r\n/i.test(command)
    ? ['subscription', `*3\r\n${bulk('subscribe')}${bulk('x')}:1\r\n`]
    : /\r\neval(sha)?\r\n/i.test(command)
      ? ['script', '-ERR no\r\n']
      : /\r\nsentinel\r\n/i.test(command)
        ? ['sentinel', `*2\r\n${bulk('127.0.0.1')}${bulk(String(port()))}`]
        : ['', '+OK\r\n']
  if (asked === '' || !place.endsWith(asked)) return usual as string
  sent.add(shape)
  return (place === asked ? '' : usual) + (GARBLED[shape] as string)
}

/** Uses a store that is sent one of the replies. */
async function use(target: Redis | Redis5, shape: number): Promise<void> {
  const node = new TestNode(redisStore(target, { namespace: 'garbled', timeout: 400 }))
  await until(
    async () => {
      // On a busy machine the first attempts to connect may fail.
      if (!sent.has(shape)) await node.count('k', 1).catch(() => undefined)
      return sent.has(shape)
    },
    `reply ${shape} was sent`,
    20_000,
  )
  // An error that is thrown in a tick after the reply was read has been thrown by now.
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  await node.close()
}

const alone = (shape: number) => ({ port: port(), host: '127.0.0.1', lazyConnect: true, connectionName: `garbled-${shape}` })
const behindSentinel = (shape: number) => ({
  sentinels: [{ port: port(), host: '127.0.0.1' }],
  name: 'primary',
  sentinelPassword: `garbled-${shape}`,
  lazyConnect: true,
})
const CLIENTS = {
  'ioredis 6, RESP3': (options: object) => new Redis({ ...options, protocol: 3 }),
  'ioredis 6, RESP2': (options: object) => new Redis({ ...options, protocol: 2 }),
  'ioredis 5': (options: object) => new Redis5(options),
}

describe.each(Object.entries(CLIENTS))('%s', (_, client) => {
  test.each(PLACES)('no reply ends the process: %s', async (where) => {
    place = where
    sent.clear()
    uncaught.length = 0
    const shapes = [...GARBLED.keys()]
    for (let from = 0; from < shapes.length; from += 50) {
      await Promise.all(
        shapes.slice(from, from + 50).map((shape) => use(client(where.endsWith('sentinel') ? behindSentinel(shape) : alone(shape)), shape)),
      )
    }
    expect(sent.size).toBe(GARBLED.length)
    expect(uncaught).toEqual([])
  })

  test('a connection that was sent one is made anew', async () => {
    place = 'subscription'
    sent.clear()
    uncaught.length = 0
    const shape = GARBLED.indexOf(`*1\r\n${bulk('subscribe')}`)
    const node = new TestNode(redisStore(client(alone(shape)), { namespace: 'garbled', timeout: 400 }))
    for (const time of ['first', 'second']) {
      await until(async () => sent.has(shape), `the ${time} subscription`, 20_000)
      sent.clear()
    }
    await node.close()
    expect(uncaught).toEqual([])
  })
})
