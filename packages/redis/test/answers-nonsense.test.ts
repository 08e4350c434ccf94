import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { systemClock, WeirError } from '@weir/core'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parseAnnouncements, parseMember, parseResult } from '../src/exchange/wire.ts'
import { redisStore } from '../src/index.ts'
import { POLICY } from './test-node.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A server that gets through the handshake and then answers every script call with what it is told to. */
let server: Server
let nonsense: Buffer = Buffer.from('+OK\r\n')
const sockets = new Set<Socket>()

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const command of String(data).split(/(?=\*\d+\r\n\$)/))
        socket.write(/evalsha|eval/i.test(command) ? nonsense : handshake(command))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  for (const socket of sockets) socket.destroy()
  server.close()
})

function handshake(command: string): string {
  if (/\r\ninfo\r\n/i.test(command)) return '$9\r\nloading:0\r\n'
  if (/\r\nsubscribe\r\n/i.test(command)) return '*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n'
  return '+OK\r\n'
}

/** RESP2 values of all kinds, nested, near what the scripts answer and far from it. */
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    '1|0|',
    '1|0|1,2',
    '0|-5|a:b',
    '1|NaN|1:1:1',
    'Infinity',
    '1e999',
    '-1',
    '9'.repeat(400),
    '1|0|1,2,3,4',
    '|||',
    '__proto__',
  ),
)
const { value } = fc.letrec<{ value: string; array: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    text.map((content) => `$${Buffer.byteLength(content)}\r\n${content}\r\n`),
    fc.integer().map((number) => `:${number}\r\n`),
    fc.constant('$-1\r\n'),
    fc.constant('*-1\r\n'),
    fc.constantFrom('-ERR no\r\n', '-NOSCRIPT no\r\n', '-MOVED 1 x\r\n', '-\r\n'),
    tie('array'),
  ),
  array: fc.array(tie('value'), { maxLength: 8 }).map((items) => `*${items.length}\r\n${items.join('')}`),
}))
const plausible = fc
  .tuple(fc.array(value, { maxLength: 4 }))
  .map(([rest]) => `*${rest.length + 3}\r\n$10\r\n1800000000\r\n$1\r\n5\r\n$0\r\n\r\n${rest.join('')}`)

test('whatever a server answers, an exchange ends with results that make sense, or with an error of ours', async () => {
  const store = redisStore(
    { host: '127.0.0.1', port: (server.address() as AddressInfo).port, protocol: 2 },
    { namespace: 'nonsense', timeout: 500 },
  )
  const connection = store.open({ id: 'fuzz', clock: systemClock, announced: () => {} })
  const outcomes = { understood: 0, WEIR_STORE_REPLY: 0, others: 0 }
  await fc.assert(
    fc.asyncProperty(fc.oneof(value, plausible), fc.boolean(), async (answer, beat) => {
      nonsense = Buffer.from(answer)
      const cells = [{ ordinal: 5 as never, taken: 1, given: 0 }]
      const heartbeat = { ttl: 1000, cursor: undefined, policies: [POLICY] }
      try {
        const reply = await connection.sync({ entries: [{ policy: POLICY, key: 'k', cells }], blocks: [], ...(beat && { heartbeat }) })
        expect(Number.isFinite(reply.time)).toBe(true)
        outcomes.understood++
        for (const result of reply.results) {
          if (result === undefined) continue
          expect(result.blocked).toBeGreaterThanOrEqual(0)
          for (const cell of result.cells) {
            expect([cell.ordinal, cell.taken, cell.given].every(Number.isFinite)).toBe(true)
          }
        }
      } catch (error) {
        if (!(error instanceof WeirError)) throw error
        expect(error.code).toMatch(/^WEIR_STORE_/)
        outcomes[error.code === 'WEIR_STORE_REPLY' ? error.code : 'others']++
      }
    }),
    { numRuns: 150 },
  )
  await connection.close()
  // Nonsense of all kinds has come as far as it can.
  expect(outcomes.understood).toBeGreaterThan(0)
  expect(outcomes.WEIR_STORE_REPLY).toBeGreaterThan(20)
})

test('messages, members and results that are no such thing are told apart, without a crash', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), text), (content) => {
      for (const parse of [parseAnnouncements, parseMember, (found: string) => parseResult(found, [])]) {
        try {
          expect(parse(content)).toBeTypeOf('object')
        } catch (error) {
          if (!(error instanceof WeirError)) throw error
          expect(error.code).toBe('WEIR_STORE_REPLY')
        }
      }
    }),
    { numRuns: 2_000 },
  )
})
