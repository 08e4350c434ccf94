import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { watchUncaught } from '@weir/testing/store-tests/uncaught'
import { until } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { postgresStore } from '../src/index.ts'

/** The kinds of messages with content that pg reads, and one without. */
const KINDS = [...'RSKZtTDCENAGHdx']
const BODIES = [
  Buffer.alloc(0),
  Buffer.from('SERROR\u0000C42601'),
  Buffer.from([0x7f, 0xff, 0xff, 0xff]),
  Buffer.from([0, 1, 0x80, 0, 0, 0, 0, 1]),
  Buffer.alloc(64, 0xff),
]
const LENGTHS = [-1, 0, 3, 2 ** 31 - 1]

function message(kind: string, body: Buffer, length: number = body.length + 4): Buffer {
  const header = Buffer.alloc(5, kind, 'latin1')
  header.writeInt32BE(length, 1)
  return Buffer.concat([header, body])
}

const READY = message('Z', Buffer.from('I'))
const WELCOME = Buffer.concat([message('R', Buffer.alloc(4)), message('K', Buffer.alloc(8, 1)), READY])
const GARBLED = [
  ...KINDS.flatMap((kind) => BODIES.map((body) => message(kind, body))),
  ...LENGTHS.flatMap((length) => ['E', 'D'].map((kind) => message(kind, Buffer.alloc(8), length))),
]

/** When a connection receives the garbled message: instead of the welcome, right after it, or as a reply. */
const PLACES = ['welcome', 'behind it', 'answer'] as const
let place: (typeof PLACES)[number]
/** The size of the pieces in which it is sent. */
let piece = Number.POSITIVE_INFINITY

let server: Server
const sockets = new Set<Socket>()
const sent = new Set<number>()
const uncaught = watchUncaught()

beforeAll(async () => {
  server = createServer((socket) => {
    const where = place
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    const send = (bytes: Buffer): void => {
      for (let at = 0; at < bytes.length; at += piece) socket.write(bytes.subarray(at, Math.min(bytes.length, at + piece)))
    }
    socket.once('data', (startup) => {
      // The name of the user contains the number of the message to send.
      const number = Number(/\0user\0g(\d+)\0/.exec(`\0${startup.subarray(8).toString('latin1')}`)?.[1])
      const what = GARBLED[number] as Buffer
      const garble = (): void => {
        send(Buffer.concat([what, READY]))
        sent.add(number)
      }
      if (where !== 'welcome') send(WELCOME)
      if (where === 'answer') socket.on('data', garble)
      else garble()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
  server.close()
})

/** A reply that can't be read fails the sync, and has no other effect. */
async function use(number: number): Promise<void> {
  const { port } = server.address() as AddressInfo
  const node = new TestNode(postgresStore(`postgres://g${number}@127.0.0.1:${port}/app`, { timeout: 200 }))
  const ask = async (): Promise<void> => {
    for (const outcome of await Promise.allSettled([node.count('k', 5), node.connection.sync({ entries: [], blocks: [] })])) {
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { code: expect.stringMatching(/^WEIR_STORE_(UNAVAILABLE|REPLY|TIMEOUT)$/) },
      })
    }
  }
  await until(async () => {
    await ask()
    return sent.has(number)
  }, 'it has got what is garbled')
  // The client has also read the message by the end of this.
  await ask()
  await node.close()
}

test.each([...PLACES.map((one) => [one, Number.POSITIVE_INFINITY] as const), ['answer', 1] as const])(
  'whatever a server says, it ends no more than its connection: %s, in pieces of %s bytes',
  async (where, bytes) => {
    place = where
    piece = bytes
    uncaught.length = 0
    sent.clear()
    await Promise.all([...GARBLED.keys()].map(use))
    expect(sent.size).toBe(GARBLED.length)
    expect(uncaught).toEqual([])
  },
)
