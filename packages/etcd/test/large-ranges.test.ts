import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HeartbeatReply, LeaseNotice, StorePolicy } from '@weir/core/sync'
import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { until } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

/** The most keys of a reply, and the number of keys of each kind: several pages. */
const MOST = 1_000
const MANY = 2_600
const HOUR = 3_600_000

type Body = { readonly responses?: readonly { readonly response_range?: { readonly kvs?: readonly unknown[] } }[] }

describeEtcd('ranges of thousands of keys', () => {
  const here = ownServer()
  let gateway: Server
  /** The number of keys of each reply, and of characters of each line of a watch. */
  const answers: number[] = []
  const lines: number[] = []
  /** Runs before a request for a later page. If it resolves to false, the request gets no reply. */
  let beforePage: () => Promise<boolean> = async () => true

  const url = (): string => `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`
  const store = (namespace: string, timeout: number = PATIENT) => etcdStore(url(), { namespace, timeout })

  beforeAll(async () => {
    gateway = createServer(async (request, response) => {
      let body = ''
      for await (const part of request) body += part
      response.on('error', () => {})
      if (/"request_range":\{[^}]*"revision"/.test(body) && !(await beforePage())) return
      const ended = new AbortController()
      response.on('close', () => ended.abort())
      try {
        const answer = await fetch(here.server.url + request.url, { method: 'POST', body, signal: ended.signal })
        response.writeHead(answer.status, { date: answer.headers.get('date') ?? '' })
        let text = ''
        for await (const part of answer.body ?? []) {
          response.write(part)
          text += Buffer.from(part).toString()
          if (request.url !== '/v3/watch') continue
          const whole = text.split('\n')
          text = whole.pop() ?? ''
          for (const line of whole) lines.push(line.length)
        }
        const { responses = [] } = (text === '' ? {} : JSON.parse(text)) as Body
        answers.push(responses.reduce((sum, { response_range }) => sum + (response_range?.kvs?.length ?? 0), 0))
        response.end()
      } catch {
        response.destroy()
      }
    }).listen(0, '127.0.0.1')
    await once(gateway, 'listening')
  })
  afterAll(() => {
    gateway.closeAllConnections()
    gateway.close()
  })

  const bytes = (text: string): string => Buffer.from(text).toString('base64')

  /** Writes a value under many names with a prefix. */
  async function fill(prefix: string, value: (i: number) => string, count: number = MANY): Promise<void> {
    for (let from = 0; from < count; from += 128) {
      const names = Array.from({ length: Math.min(128, count - from) }, (_, i) => from + i)
      const success = names.map((i) => ({ request_put: { key: bytes(`${prefix}x${i}`), value: bytes(value(i)) } }))
      expect(await here.server.ask('/v3/kv/txn', { success })).toMatchObject({ succeeded: true })
    }
  }

  async function nameOf(namespace: string, kind: string): Promise<{ readonly name: string; readonly value: string }> {
    const [found] = await here.server.keys(`${namespace}/1/${kind}/`)
    if (found === undefined) throw new Error(`nothing under ${kind}`)
    return found
  }

  async function beat(node: TestNode, more: object = {}): Promise<HeartbeatReply> {
    const heartbeat = { ttl: 10_000, cursor: undefined, policies: [POLICY], ...more }
    const reply = await node.connection.sync({ entries: [], blocks: [], heartbeat })
    if (reply.heartbeat === undefined) throw new Error('no heartbeat')
    return reply.heartbeat
  }

  const later = (): number => Date.now() + HOUR
  const block = (i: number): string => JSON.stringify([POLICY.id, `k${i}`, later(), later(), 0, 0, 0, 0, 0])
  const news = (key: string): LeaseNotice => ({
    type: 'lease',
    policyId: POLICY.id,
    key,
    ordinal: 1 as never,
    free: 1,
    tail: false,
    lost: false,
  })

  test.each<[kind: string, prefix: string, value: (i: number) => string, found: (reply: HeartbeatReply) => number, expected: number]>([
    ['processes', 'n', () => JSON.stringify([later()]), ({ nodes }) => nodes, MANY + 1],
    ['blocks', 'b/fixed', block, ({ blocks }) => new Set(blocks.map(({ key }) => key)).size, MANY],
    ['hot keys', 'h/fixed', (i) => JSON.stringify([POLICY.id, `k${i}`, 1]), ({ hot }) => hot.length, 0],
    ['news of leases', 'f/fixed', (i) => JSON.stringify([news(`k${i}`)]), ({ leases = [] }) => leases.length, MANY],
    ['rules of others', 'r', (i) => JSON.stringify([`x${i}`, `rules ${i}`]), ({ rules = [] }) => rules.length, 63],
  ])('a heartbeat reads %s in pages', async (_, prefix, value, found, expected) => {
    const namespace = freshNamespace()
    const node = new TestNode(store(namespace))
    await fill(`${namespace}/1/${prefix}/`, value)
    answers.length = 0
    expect(found(await beat(node, { leases: true, rules: 'own' }))).toBe(expected)
    expect(Math.max(...answers)).toBeLessThan(1.1 * MOST)
    await node.close()
  })

  test('a heartbeat reads statuses in pages', async () => {
    const namespace = freshNamespace()
    const node = new TestNode(store(namespace))
    await fill(`${namespace}/1/n/`, () => JSON.stringify([later()]))
    await fill(`${namespace}/1/s/`, (i) => JSON.stringify([`x${i}`, Date.now(), 'busy']))
    answers.length = 0
    expect((await beat(node, { watch: true })).statuses).toHaveLength(MANY)
    expect(Math.max(...answers)).toBeLessThan(1.1 * MOST)
    await node.close()
  })

  test.each<[string, StorePolicy]>([
    ['fixed window', POLICY],
    ['sliding window', { ...POLICY, id: 'sliding', cells: 4 }],
  ])('counts of many processes are read in pages, and are all added up: %s', async (_, policy) => {
    const namespace = freshNamespace()
    const node = new TestNode(store(namespace))
    const cells = [{ ordinal: node.ordinal, taken: 1, given: 0 }]
    const keys = ['a', 'b', 'c', 'd', 'e']
    const sync = async (taken: number): Promise<(number | undefined)[]> => {
      const entries = keys.map((key) => ({ policy, key, cells: [{ ...cells[0]!, taken }] }))
      const { results } = await node.connection.sync({ entries, blocks: [] })
      return results.map((result) => {
        const total = result?.cells.reduce((sum, cell) => sum + cell.taken, 0)
        return total
      })
    }
    expect(await sync(1)).toEqual(keys.map(() => 1))
    const own = await nameOf(namespace, 'c')
    for (const key of keys) await fill(`${namespace}/1/c/${policy.id}/${key}/`, () => own.value, 700)
    answers.length = 0
    expect(await sync(2)).toEqual(keys.map(() => 702))
    // Fewer keys are read together from now on, so that no second page is needed.
    expect(await sync(3)).toEqual(keys.map(() => 703))
    expect(Math.max(...answers)).toBeLessThan(1.1 * MOST)
    expect(answers.filter((count) => count > 0).slice(-5)).toEqual(Array(5).fill(701))
    await node.close()
  })

  test('pages are all of one revision: what is written between them is left for the next heartbeat', async () => {
    const namespace = freshNamespace()
    const node = new TestNode(store(namespace))
    await fill(`${namespace}/1/b/fixed/`, block)
    let pages = 0
    beforePage = async () => {
      await here.server.ask('/v3/kv/put', { key: bytes(`${namespace}/1/b/fixed/y${pages++}`), value: bytes(block(MANY)) })
      await here.server.ask('/v3/kv/put', { key: bytes(`${namespace}/1/v`), value: '' })
      return true
    }
    const first = await beat(node)
    beforePage = async () => true
    expect(first.blocks).toHaveLength(MANY)
    expect(pages).toBeGreaterThan(1)
    expect((await beat(node, { cursor: first.cursor })).blocks).toHaveLength(pages)
    await node.close()
  })

  test('a page that is not answered in time, or whose revision was compacted away, fails the heartbeat, and the next one reads all', async () => {
    const namespace = freshNamespace()
    const node = new TestNode(store(namespace, 500))
    await fill(`${namespace}/1/b/fixed/`, block)
    beforePage = async () => false
    expect(await node.failure(() => beat(node))).toMatchObject({ code: 'WEIR_STORE_TIMEOUT' })
    beforePage = async () => {
      const { header } = await here.server.ask('/v3/kv/put', { key: bytes(`${namespace}/x`), value: '' })
      await here.server.ask('/v3/kv/compaction', { revision: (header as { readonly revision: string }).revision })
      return true
    }
    expect(await node.eventually(() => node.failure(() => beat(node)))).toMatchObject({ message: expect.stringContaining('compacted') })
    beforePage = async () => true
    const { blocks } = await node.eventually(() => beat(node).catch(() => undefined))
    expect(blocks).toHaveLength(MANY)
    await node.close()
  })

  test('a connection that is closed between pages asks for no further one', async () => {
    const namespace = freshNamespace()
    const node = new TestNode(store(namespace))
    await fill(`${namespace}/1/b/fixed/`, block)
    let pages = 0
    let closed: Promise<void> | undefined
    beforePage = async () => {
      pages++
      closed ??= node.close()
      await closed
      return true
    }
    expect(await node.failure(() => beat(node))).toMatchObject({ code: 'WEIR_CLOSED' })
    beforePage = async () => true
    expect(pages).toBe(1)
  })

  test('a watch that catches up hears announcements in lines of a bounded length', async () => {
    const namespace = freshNamespace()
    const node = new TestNode(store(namespace))
    const one = (key: string): string => JSON.stringify([{ type: 'ask', policyId: POLICY.id, key }])
    const heard = (key: string): boolean => node.announcements.some((said) => 'key' in said && said.key === key)
    await until(async () => {
      await here.server.ask('/v3/kv/put', { key: bytes(`${namespace}/1/a/other`), value: bytes(one('first')) })
      return heard('first')
    }, 'the first announcement is heard')
    gateway.closeAllConnections()
    const long = JSON.stringify([{ type: 'ask', policyId: POLICY.id, key: 'x'.repeat(200_000) }])
    for (let i = 0; i < 30; i++) await here.server.ask('/v3/kv/put', { key: bytes(`${namespace}/1/a/other`), value: bytes(long) })
    await here.server.ask('/v3/kv/put', { key: bytes(`${namespace}/1/a/other`), value: bytes(one('last')) })
    await until(async () => heard('last'), 'the last announcement is heard')
    expect(Math.max(...lines)).toBeLessThan(4_000_000)
    await node.close()
  })
})
