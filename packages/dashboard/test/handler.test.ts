import { systemClock } from '@weir/core'
import { Hub } from '@weir/core/memory'
import { expect, onTestFinished, test, vi } from 'vitest'
import { dashboard } from '../src/index.ts'
import type { Found } from '../src/protocol.ts'
import { post, serve, throttlerFor, waitFor } from './servers.ts'

const open = { authorize: () => true, actions: true }

test('the page is found at an address without a slash, whatever a proxy has cut off', async () => {
  const { url } = await serve(dashboard(throttlerFor(), { authorize: 'none' }))
  const response = await fetch(`${url}/a/weir`, { redirect: 'manual' })
  expect(response.status).toBe(302)
  expect(response.headers.get('location')).toBe('./weir/')
  expect((await fetch(`${url}/a/https:example`, { redirect: 'manual' })).headers.get('location')).toBe('./https:example/')
})

test('an unknown path is not found', async () => {
  const { url } = await serve(dashboard(throttlerFor(), { authorize: 'none', path: '/weir' }))
  const statuses = async (paths: readonly string[]) =>
    await Promise.all(paths.map(async (path) => (await fetch(url + path, { redirect: 'manual' })).status))
  expect(await statuses(['/weir', '/weir/', '/weir/nonsense', '/weir/a/', '/weir/a/events'])).toEqual([302, 200, 404, 404, 404])
  expect((await post(`${url}/weir/a/block`, { key: 'a', duration: 1_000 })).status).toBe(405)
  const elsewhere = await serve(dashboard(throttlerFor(), { authorize: 'none' }))
  expect((await fetch(`${elsewhere.url}/favicon.ico`, { redirect: 'manual' })).status).toBe(404)
})

test('the page is one document, with a policy that lets nothing else in', async () => {
  const { url } = await serve(dashboard(throttlerFor(), { authorize: 'none' }))
  const response = await fetch(`${url}/`)
  const text = await response.text()
  expect(text).not.toMatch(/(src|href)="?(https?:)?\/\//)
  const policy = response.headers.get('content-security-policy') ?? ''
  expect(policy).toMatch(/default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; connect-src 'self'/)
  expect(policy).not.toContain('unsafe')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect((await fetch(`${url}/`, { method: 'DELETE' })).status).toBe(405)
  expect(await (await fetch(`${url}/`, { method: 'HEAD' })).text()).toBe('')
})

test('the stream tells of all nodes, their rates, hot keys and blocked keys', { timeout: 20_000 }, async () => {
  const hub = new Hub(systemClock)
  const [one, two] = [throttlerFor(hub), throttlerFor(hub)]
  let sent = 0
  const load = setInterval(() => {
    sent++
    for (const node of [one, two]) node.check(sent % 10 === 0 ? 'hot' : `user ${sent % 500}`)
  }, 20)
  onTestFinished(() => clearInterval(load))
  const { url } = await serve(dashboard(one, open))
  one.block('bad', '1h', { policy: 'user' })
  const { view, hello } = await waitFor(
    `${url}/weir/events`,
    ({ nodes }) => nodes.length === 2 && nodes.every(({ allowedRate }) => allowedRate > 0),
  )
  expect(hello.build).toMatch(/^[0-9a-f]{12}$/)
  expect(view).toMatchObject({ node: one.nodeId, state: 'synced', actions: true, nodeCount: 2 })
  expect(view.policies.map(({ name }) => name)).toEqual(['user', 'tenant'])
  expect(view.policies[0]?.allowedRate).toBeGreaterThan(10)
  expect(view.top[0]).toMatchObject({ policy: 'user', key: 'hot', limit: 100 })
  expect(view.blocked).toEqual([expect.objectContaining({ policy: 'user', key: 'bad', cause: 'manual' })])
  expect(view.log.map(({ kind }) => kind)).toContain('blocked')
})

test('a block shows at once, not with the next second', async () => {
  // With a fake interval the next second never comes.
  vi.useFakeTimers({ toFake: ['setInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const throttler = throttlerFor()
  const { url } = await serve(dashboard(throttler, open))
  let first = false
  const seen = waitFor(`${url}/weir/events`, ({ blocked }) => {
    first = true
    return blocked.length > 0
  })
  await expect.poll(() => first, { timeout: 20_000 }).toBe(true)
  throttler.block('a', '1h')
  expect((await seen).view.blocked.map(({ key }) => key)).toContain('a')
})

test('keys are blocked, found and unblocked by hand', async () => {
  const throttler = throttlerFor()
  const { url } = await serve(dashboard(throttler, open))
  expect((await post(`${url}/weir/block`, { key: 'a', policy: 'user', duration: 60_000 })).status).toBe(200)
  expect(throttler.check('a')).toMatchObject({ allowed: false, reason: 'blocked' })
  throttler.check('used')
  const used = (await (await post(`${url}/weir/find`, { key: 'used' })).json()) as Found
  expect(used.parts.map(({ remaining }) => remaining)).toEqual([99, 999])
  const found = (await (await post(`${url}/weir/find`, { key: 'a' })).json()) as Found
  expect(found.parts).toEqual([
    { policy: 'user', key: 'a', limit: 100, remaining: 0, reason: 'blocked', retryAfterMs: expect.any(Number), dryRun: false, samples: [] },
    {
      policy: 'tenant',
      key: 'a',
      limit: 1_000,
      remaining: 1_000,
      reason: 'ok',
      retryAfterMs: 0,
      dryRun: false,
      samples: [[expect.any(Number), 0]],
    },
  ])
  expect(found.blocked.map(({ key }) => key)).toEqual(['a'])
  expect((await post(`${url}/weir/unblock`, { key: 'a' })).status).toBe(200)
  expect(throttler.check('a').allowed).toBe(true)
  expect((await post(`${url}/weir/reset`, { key: 'used', policy: 'user' })).status).toBe(200)
  expect(throttler.peek('used').parts.map(({ remaining }) => remaining)).toEqual([100, 999])
})

test.each([
  [{}, '"key" must be a string.'],
  [{ key: 'a', duration: -1 }, '"duration" must be a number of milliseconds, at most a year.'],
  [
    { key: 'a', duration: 60_000, policy: 'nobody' },
    'Unknown policy "nobody". This throttler has "user" and "tenant". See @weir/core/docs/errors/weir_unknown_policy.md',
  ],
  [{ key: 'a', duration: 60_000, policy: 7 }, '"policy" must be a string.'],
])('an action that makes no sense is explained: %j', async (body, message) => {
  const { url } = await serve(dashboard(throttlerFor(), open))
  const response = await post(`${url}/weir/block`, body)
  expect(response.status).toBe(400)
  expect(await response.json()).toEqual({ error: message })
})

test('an endless body is cut off', async () => {
  const { url } = await serve(dashboard(throttlerFor(), open))
  const response = await post(`${url}/weir/block`, { key: 'x'.repeat(400_000), duration: 1 })
  expect(await response.json()).toEqual({ error: 'The body is too long.' })
})

test('more pages than allowed are sent away', async () => {
  const { url } = await serve(dashboard(throttlerFor(), { authorize: 'none', maxClients: 1 }))
  const first = await fetch(`${url}/weir/events`)
  expect((await fetch(`${url}/weir/events`)).status).toBe(503)
  await first.body?.cancel()
  await expect.poll(async () => (await fetch(`${url}/weir/events`)).status).toBe(200)
})

test('a path of its own: requests elsewhere are passed on', async () => {
  const handler = dashboard(throttlerFor(), { authorize: 'none', path: '/ops/weir' })
  const { url } = await serve((request, response) => handler(request, response, () => response.end('elsewhere')))
  expect(await (await fetch(`${url}/ops/weirder`)).text()).toBe('elsewhere')
  expect(await (await fetch(`${url}/ops/weir`)).text()).toContain('<title>Weir</title>')
})

test('close ends the streams', async () => {
  const handler = dashboard(throttlerFor(), { authorize: 'none' })
  const { url } = await serve(handler)
  const response = await fetch(`${url}/weir/events`)
  handler.close()
  expect(await response.text()).toContain('event: view')
})
