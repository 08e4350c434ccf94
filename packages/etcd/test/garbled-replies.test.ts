import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SeededRandom } from '@weir/testing'
import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { watchUncaught } from '@weir/testing/store-tests/uncaught'
import { SEED } from '@weir/tooling/seed'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { etcdStore } from '../src/index.ts'

const header = { revision: '7' }
const held = (key: string, value: string) => ({ key, value, mod_revision: '3' })

/** Invalid parts of replies. */
const WRONG: readonly unknown[] = [null, 7, -1, 1e300, 'x', '', [], {}, [null], [7], { revision: 'x' }, true]
const SHAPES: readonly ((part: unknown) => unknown)[] = [
  (part) => part,
  (part) => ({ header: part, responses: [] }),
  (part) => ({ header, responses: part }),
  (part) => ({ header, responses: [part, part, part] }),
  (part) => ({ header, responses: [{ response_range: part }] }),
  (part) => ({ header, responses: [{ response_txn: part }] }),
  (part) => ({ header, responses: [{ response_txn: { succeeded: true, responses: [part, part, part] } }] }),
  (part) => ({ header, responses: [{ response_txn: { succeeded: true, responses: [{}, { response_range: { kvs: part } }, {}] } }] }),
  (part) => ({ header, responses: Array.from({ length: 9 }, () => ({ response_range: { kvs: [held(String(part), String(part))] } })) }),
  (part) => ({ ID: part }),
  (part) => ({ ID: '5', token: part }),
  (part) => ({ result: part }),
  (part) => ({ result: { header, events: part, compact_revision: part } }),
]

let server: Server
let respond: (response: ServerResponse) => void
const uncaught = watchUncaught()

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume()
    request.on('error', () => {})
    response.on('error', () => {})
    respond(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** Runs every operation of a process. An invalid reply rejects the call or is ignored, and never throws elsewhere. */
async function use(username?: string): Promise<void> {
  const endpoints = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const node = new TestNode(etcdStore({ endpoints, ...(username && { username, password: 'x' }) }, { namespace: 'garbled', timeout: 500 }))
  const step = {
    id: 'x',
    take: () => ({ allowed: true, remaining: 0, resetAfterMs: 0, retryAfterMs: 0, delayMs: 0 }),
    add() {},
    giveBack() {},
  }
  const policy = { id: 'p', step: { ...step, lifetime: () => 1_000 }, parameters: [] }
  const outcomes = await Promise.allSettled([
    node.count('k', 5),
    node.count('k', 5, { ...POLICY, cells: 4 }),
    node.count('k', 5, { ...POLICY, cells: 20, drain: 1 }),
    node.block('k', 1_000),
    node.beat(undefined),
    node.take(policy, 'k', 1, 10),
    node.connection.sync({ entries: [], blocks: [] }),
  ])
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected' && !/no heartbeat/.test(String(outcome.reason))) {
      expect(outcome.reason).toMatchObject({ code: expect.stringMatching(/^WEIR_STORE_(UNAVAILABLE|REPLY|TIMEOUT)$/) })
    }
  }
  await node.close()
}

test.each([...SHAPES.keys()])('no answer of shape %i ends the process or is believed', async (shape) => {
  uncaught.length = 0
  for (const part of WRONG) {
    respond = (response) => response.end(JSON.stringify(SHAPES[shape]?.(part)))
    await use(shape === 10 ? 'user' : undefined)
  }
  expect(uncaught).toEqual([])
})

test.each(['no JSON', '', '{', '{"error":7}', '{"error":"x","code":"y"}', '\n\n\n'])('nor does %j, with any status', async (text) => {
  uncaught.length = 0
  for (const status of [200, 204, 302, 404, 500]) {
    respond = (response) => response.writeHead(status, { date: 'nonsense' }).end(status === 204 ? undefined : text)
    await use()
  }
  expect(uncaught).toEqual([])
})

test('nor do answers that break off, or mix all of that', async () => {
  uncaught.length = 0
  const random = new SeededRandom(SEED)
  const any = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)] as T
  for (let i = 0; i < 40; i++) {
    respond = (response) => {
      const text = JSON.stringify(any(SHAPES)(any(WRONG))) ?? ''
      if (random.next() < 0.2) response.writeHead(200, { 'content-length': text.length + 5 }).write(text, () => response.destroy())
      else response.end(text)
    }
    await use()
  }
  expect(uncaught, `FC_SEED=${SEED}`).toEqual([])
})
