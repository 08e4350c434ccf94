import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { systemClock, WeirError } from '@weir/core'
import { POLICY } from '@weir/testing/store-tests/test-node'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parseAnnouncements, parseMember, parseResult } from '../src/exchange/wire.ts'
import { redisStore } from '../src/index.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A server that completes the handshake and then sends the test's reply to every script call. */
let server: Server
let nonsense: Buffer = Buffer.from('+OK\r\n')
/** Replaces the replies to heartbeats, if set. */
let heartbeats: (() => Buffer) | undefined
const sockets = new Set<Socket>()

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const command of String(data).split(/(?=\*\d+\r\n\$)/))
        socket.write(
          !/evalsha|eval/i.test(command) ? handshake(command) : /"registry"/.test(command) ? (heartbeats?.() ?? nonsense) : nonsense,
        )
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

/** RESP2 values of all kinds, nested, similar to the scripts' replies and far from them. */
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '0|', '0|1,2', '-5|a:b', 'NaN|1:1:1', 'Infinity', '1e999', '-1', '9'.repeat(400), '0|1,2,3,4', '|||', '__proto__'),
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
  // Proves that replies of all kinds were read as far as possible.
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

/** Returns a value in the form that a server sends. */
function resp(content: string | number | readonly string[]): string {
  if (typeof content === 'number') return `:${content}\r\n`
  if (typeof content === 'string') return `$${Buffer.byteLength(content)}\r\n${content}\r\n`
  return `*${content.length}\r\n${content.join('')}`
}

const ENTRIES = 6
const HEAD = [resp('1800000000'), resp('5'), resp('')]
/** Two blocks, and totals in both forms: the reply of a healthy server. */
const RESULTS = [
  resp(0),
  resp('1500.5'),
  ...Array.from({ length: ENTRIES }, (_, i) => (i % 2 === 0 ? resp(i + 1) : resp(`0|5,${i + 1},0`))),
]
const BEAT = [
  resp(3),
  resp(7),
  resp(7),
  resp([resp('fixed\nk\n5'), resp('fixed\nl\n5')]),
  resp([resp('fixed\nk'), resp('1000'), resp('fixed\nl'), resp(0)]),
  resp(1),
  resp([resp('other'), resp('12'), resp('fine')]),
  resp(''),
  resp([]),
]
const mutations = (length: number) =>
  fc.uniqueArray(fc.tuple(fc.nat(length - 1), value), { maxLength: length, selector: ([place]) => place })
const mutated = (parts: readonly string[], list: readonly [number, string][]): string[] =>
  parts.map((part, i) => list.find(([place]) => place === i)?.[1] ?? part)

test('an honest reply of which parts are replaced: these parts fail alone, all others count', async () => {
  const store = redisStore(
    { host: '127.0.0.1', port: (server.address() as AddressInfo).port, protocol: 2 },
    { namespace: 'mutated', timeout: 2_000 },
  )
  const warnings: WeirError[] = []
  const connection = store.open({ id: 'mutants', clock: systemClock, announced: () => {}, warned: (error) => warnings.push(error) })
  const policy = { ...POLICY, id: 'fixed' }
  const entries = Array.from({ length: ENTRIES }, (_, i) => ({
    policy,
    key: `k${i}`,
    cells: [{ ordinal: 5 as never, taken: 1, given: 0 }],
  }))
  const blocks = ['k0', 'k1'].map((key) => ({ policy, key, kind: 'set', remaining: 1 }) as const)
  await fc.assert(
    fc.asyncProperty(
      mutations(RESULTS.length),
      mutations(BEAT.length),
      fc.option(fc.array(value, { maxLength: 4 })),
      async (wrong, wrongBeat, lost) => {
        const more = lost === null ? [] : [resp(lost)]
        nonsense = Buffer.from(resp([...HEAD, ...mutated(RESULTS, wrong), ...more]))
        const beatAnswer = Buffer.from(resp([...HEAD, ...mutated(BEAT, wrongBeat)]))
        heartbeats = () => beatAnswer
        const request = { ttl: 1000, cursor: undefined, policies: [policy], watch: true as const }
        const reply = await connection.sync({ entries, blocks, heartbeat: request })
        const wrongPlaces = new Set(wrong.map(([place]) => place))
        ;[...reply.blocks, ...reply.results].forEach((result, place) => {
          if (!wrongPlaces.has(place)) expect(result).toBeDefined()
          if (result === undefined) return
          if (typeof result === 'number') expect(result).toBeGreaterThanOrEqual(0)
          else {
            const [cell] = result.cells
            if (!wrongPlaces.has(place)) expect(cell).toEqual({ ordinal: 5, taken: place - 1, given: 0 })
            for (const { ordinal, taken, given } of result.cells) {
              expect(
                Number.isSafeInteger(ordinal) && ordinal >= 0 && taken >= 0 && taken <= 2 ** 63 && given >= 0 && given <= 2 ** 63,
              ).toBe(true)
            }
          }
        })
        const beat = reply.heartbeat
        const wrongInBeat = new Set(wrongBeat.map(([place]) => place))
        // A heartbeat without versions of the block list is invalid.
        if (!wrongInBeat.has(1) && !wrongInBeat.has(2)) expect(beat).toBeDefined()
        if (beat === undefined) return
        expect(Number.isSafeInteger(beat.nodes) && beat.nodes >= 1).toBe(true)
        if (!wrongInBeat.has(0)) expect(beat.nodes).toBe(3)
        // If the versions are wrong, the process repeats the heartbeat, and the server sends the same reply.
        if (!wrongInBeat.has(4)) expect([...new Set(beat.blocks.map(({ key, remaining }) => `${key} ${remaining}`))]).toEqual(['k 1000'])
        if (!wrongInBeat.has(6)) expect(beat.statuses).toEqual([{ node: 'other', age: 12, status: 'fine' }])
        for (const { remaining } of beat.blocks) expect(remaining).toBeGreaterThanOrEqual(0)
        for (const { age } of beat.statuses ?? []) expect(age).toBeGreaterThanOrEqual(0)
        if (beat.ahead !== undefined) expect(beat.ahead).toBeTypeOf('number')
      },
    ),
    { numRuns: 300 },
  )
  heartbeats = undefined
  await connection.close()
  expect(warnings.length).toBeLessThanOrEqual(100)
  for (const { message } of warnings) expect(message).toMatch(/^[^\p{Cc}]{0,500}$/u)
})

test('a server whose list of blocks never ends is not asked for ever', async () => {
  const store = redisStore(
    { host: '127.0.0.1', port: (server.address() as AddressInfo).port, protocol: 2 },
    { namespace: 'endless', timeout: 2_000 },
  )
  const connection = store.open({ id: 'endless', clock: systemClock, announced: () => {} })
  let next = 0
  const answer = (): Buffer => {
    next++
    return Buffer.from(resp([...HEAD, resp(1), resp(1e15), resp(next), resp([]), resp([]), resp(0), resp([]), resp(''), resp([])]))
  }
  heartbeats = answer
  const { heartbeat } = await connection.sync({ entries: [], blocks: [], heartbeat: { ttl: 1000, cursor: undefined, policies: [POLICY] } })
  heartbeats = undefined
  expect(heartbeat?.cursor).toBe(String(next))
  expect(next).toBeLessThan(300)
  await connection.close()
})

test('announcements of all lengths and kinds are read in bounded time, each key of them alone', () => {
  const line = fc.oneof(
    text,
    fc.constantFrom('5,1,0', '5;1,2,3', '5;', '-1,1,0', '5,-1,0', '5,1e300,0', '5,NaN,0', '1e300;1', '1000', '-5', 'Infinity'),
  )
  fc.assert(
    fc.property(fc.constantFrom('t', 'b', 'x', ''), fc.array(line, { maxLength: 30 }), (type, lines) => {
      let announcements: ReturnType<typeof parseAnnouncements>
      try {
        announcements = parseAnnouncements([type, 'node', 'policy', ...lines].join('\n'))
      } catch (error) {
        expect(error).toBeInstanceOf(WeirError)
        return
      }
      for (const announcement of announcements) {
        if (announcement.type === 'block') expect(announcement.remaining >= 0 && announcement.remaining <= 5e12).toBe(true)
        else if (announcement.type === 'total') {
          for (const { ordinal, taken, given } of announcement.cells) {
            expect(Number.isSafeInteger(ordinal) && ordinal >= 0 && taken >= 0 && taken <= 2 ** 63 && given >= 0 && given <= 2 ** 63).toBe(
              true,
            )
          }
        }
      }
    }),
    { numRuns: 5_000 },
  )
  const good = 'good\n5,1,0'
  expect(parseAnnouncements(`t\nn\np\nbad\nx\n${good}`)).toEqual([
    { type: 'total', policyId: 'p', key: 'good', cells: [{ ordinal: 5, taken: 1, given: 0 }] },
  ])
  for (const long of [
    `t\nn\np\n${`${good}\n`.repeat(501).trim()}`,
    `t\nn\np\n${'x'.repeat(3_000_000)}\n5,1,0`,
    '\n'.repeat(1_000_000),
    `t\nn\np${'\n'.repeat(1_000_000)}`,
  ]) {
    expect(() => parseAnnouncements(long)).toThrow(WeirError)
  }
  const manyCells = `t\nn\np\nk\n5;${'1,'.repeat(900_000)}1`
  expect(parseAnnouncements(manyCells)).toEqual([])
})
