import { createThrottler } from '@weir/core'
import { type FollowOptions, follow } from '@weir/core/rules'
import { expect, onTestFinished, test } from 'vitest'
import { dashboard, password } from '../src/index.ts'
import type { RulesFound } from '../src/protocol.ts'
import { MemorySource } from './rules-source.ts'
import { cookieOf, PASSWORD, post, serve, signIn } from './servers.ts'

const limit = { name: 'customer', key: 'ip', limit: 10, interval: '1h' } as const

async function followed(source: MemorySource, options: FollowOptions = {}) {
  const throttler = createThrottler({ policies: [{ ...limit, coordination: 'local' }] })
  onTestFinished(() => throttler.close())
  throttler.on('warning', () => {})
  const rules = follow(throttler, source, options)
  onTestFinished(() => rules.close())
  await rules.ready
  return { throttler, rules }
}

async function ask(url: string, search = '', from = 0): Promise<RulesFound> {
  const response = await post(`${url}/rules`, { key: search, from })
  expect(response.status).toBe(200)
  return (await response.json()) as RulesFound
}

test('tells the rules that this node follows, as they were written', async () => {
  const source = new MemorySource()
  const change = { at: '2026-11-23T22:00:00Z', by: 'alice', why: 'incident 42' }
  source.put({ version: 6, policies: [limit] })
  source.put({
    version: 7,
    change,
    policies: [
      { ...limit, key: ['ip', { header: 'x-key' }], match: ['POST /login', '/a'], interval: { calendar: 'day', timeZone: 'UTC' } },
    ],
    overrides: [{ policy: 'customer', key: 'acme', limit: 5_000 }],
    next: { policies: [{ ...limit, limit: 5 }], overrides: [{ policy: 'customer', key: 'acme', limit: 6_000 }] },
  })
  const { throttler, rules } = await followed(source)
  const { url } = await serve(dashboard(throttler, { authorize: 'none' }))
  expect(await ask(url)).toEqual({
    source: 'rules of the test',
    versions: [
      { version: 7, ...change, digest: rules.status.digest, since: expect.any(Number) },
      { version: 6, digest: expect.any(String) },
    ],
    policies: [
      {
        name: 'customer',
        options: [
          ['key', 'ip, header x-key'],
          ['limit', '10'],
          ['interval', 'calendar day, timeZone UTC'],
          ['match', 'POST /login, /a'],
        ],
      },
    ],
    overrides: { total: 1, found: 1, from: 0, rows: [{ policy: 'customer', key: 'acme', limit: 5_000, until: null }] },
    next: {
      policies: [
        {
          name: 'customer',
          options: [
            ['key', 'ip'],
            ['limit', '5'],
            ['interval', '1h'],
          ],
        },
      ],
      overrides: 1,
    },
  })
})

test('thousands of overrides are paged and searched, without those that have ended', async () => {
  const source = new MemorySource()
  const overrides = Array.from({ length: 5_000 }, (_, i) => ({ policy: 'customer', key: `Tenant-${i}`, limit: i }))
  overrides[0] = { policy: 'customer', key: 'gone', limit: 1, until: '2001-01-01T00:00:00Z' } as (typeof overrides)[0]
  source.put({ version: 1, policies: [limit], overrides })
  const { throttler } = await followed(source)
  const { url } = await serve(dashboard(throttler, { authorize: 'none' }))
  const first = (await ask(url)).overrides
  expect([first.total, first.found, first.from, first.rows.length]).toEqual([4_999, 4_999, 0, 25])
  expect(first.rows[0]?.key).toBe('Tenant-1')
  expect((await ask(url, '', 25)).overrides.rows[0]?.key).toBe('Tenant-26')
  // Any override of a page returns the whole page. Beyond the end the last page is returned.
  expect((await ask(url, '', 24)).overrides.from).toBe(0)
  const last = (await ask(url, '', 1e9)).overrides
  expect([last.from, last.rows.length, last.rows.at(-1)?.key]).toEqual([4_975, 24, 'Tenant-4999'])
  expect((await ask(url, 'tenant-499')).overrides).toMatchObject({ total: 4_999, found: 11, from: 0 })
  expect((await ask(url, 'nobody')).overrides).toMatchObject({ found: 0, rows: [] })
  expect((await ask(url, 'CUSTOMER')).overrides.found).toBe(4_999)
})

test('a node that follows none says so', async () => {
  const throttler = createThrottler({ policies: [{ ...limit, coordination: 'local' }] })
  onTestFinished(() => throttler.close())
  const { url } = await serve(dashboard(throttler, { authorize: 'none' }))
  expect(await ask(url)).toMatchObject({ versions: [], policies: [], overrides: { total: 0 } })
})

test('a new document is told at once, whatever is remembered of the one before', async () => {
  const source = new MemorySource()
  source.put({ version: 1, policies: [limit] })
  const { throttler, rules } = await followed(source)
  const { url } = await serve(dashboard(throttler, { authorize: 'none' }))
  expect((await ask(url)).versions).toMatchObject([{ version: 1 }])
  source.put({ version: 2, policies: [limit] })
  await expect.poll(() => rules.status.version).toBe(2)
  expect((await ask(url)).versions).toMatchObject([{ version: 2 }, { version: 1 }])
  source.put({ version: 3, policies: [{ ...limit, limit: -1 }] })
  await expect.poll(() => rules.status.rejected?.version).toBe(3)
  expect((await ask(url)).versions).toMatchObject([{ version: 3 }, { version: 2 }, { version: 1 }])
})

test('is for those who may see the dashboard, changes nothing, and rejects nonsense', async () => {
  const source = new MemorySource()
  source.put({ version: 1, policies: [limit] })
  const { throttler } = await followed(source)
  const { url } = await serve(dashboard(throttler, { authorize: password(PASSWORD) }))
  expect((await post(`${url}/rules`, { key: '' })).status).toBe(401)
  const cookie = cookieOf(await signIn(`${url}/`))
  // Reading the rules needs no actions.
  expect((await post(`${url}/rules`, { key: '' }, { cookie })).status).toBe(200)
  expect((await post(`${url}/rules`, { key: '' }, { cookie, 'X-Weir-Dashboard': '0' })).status).toBe(403)
  for (const from of [-1, 1.5, '0', null, 1e300]) expect((await post(`${url}/rules`, { key: '', from }, { cookie })).status).toBe(400)
  expect((await post(`${url}/rules`, { from: 0 }, { cookie })).status).toBe(400)
})
