import { createThrottler, memoryStore, systemClock, tokenBucket } from '@weir/core'
import { Hub } from '@weir/core/memory'
import { backgroundStore } from '@weir/core/sync'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { AuthorizeFunction } from '../src/index.ts'
import { dashboard, password } from '../src/index.ts'
import type { Audit, Done, Found } from '../src/protocol.ts'
import { cookieOf, PASSWORD, post, serve, signIn, throttlerFor } from './servers.ts'

const open = { authorize: () => true, actions: true } as const

async function act(url: string, action: string, body: object): Promise<Done> {
  const response = await post(`${url}/${action}`, body)
  expect(response.status).toBe(200)
  return (await response.json()) as Done
}

async function undo(url: string, { undo: offer }: Done): Promise<Response> {
  if (offer === undefined) throw new Error('There is no undo.')
  const { action, ...body } = offer
  return await post(`${url}/${action}`, body)
}

test('a block, an unblock and a reset are undone', async () => {
  const throttler = throttlerFor()
  const { url } = await serve(dashboard(throttler, open))
  throttler.check('a', 7)
  expect((await undo(url, await act(url, 'block', { key: 'a', duration: 60_000 }))).status).toBe(200)
  expect(throttler.peek('a').allowed).toBe(true)

  // An earlier block comes back for the rest of its time.
  throttler.block('a', '1h', { policy: 'user' })
  await undo(url, await act(url, 'block', { key: 'a', policy: 'user', duration: 60_000 }))
  const [user] = throttler.explain('a')
  expect(user?.blockedForMs).toBeGreaterThan(3_000_000)
  await undo(url, await act(url, 'unblock', { key: 'a' }))
  expect(throttler.explain('a').map(({ blocked }) => blocked)).toEqual([true, false])
  throttler.unblock('a')

  const done = await act(url, 'reset', { key: 'a' })
  expect(throttler.peek('a').parts.map(({ remaining }) => remaining)).toEqual([100, 1_000])
  await undo(url, done)
  expect(throttler.peek('a').parts.map(({ remaining }) => remaining)).toEqual([93, 993])
})

test('the undo of a reset brings back a cooldown, and no units of an interval that has ended', async () => {
  const throttler = createThrottler({
    policies: [
      { name: 'long', limit: 3, interval: '1h', cooldown: '10m' },
      { name: 'short', limit: 9, interval: '1s' },
    ],
  }).start()
  onTestFinished(() => throttler.close())
  const { url } = await serve(dashboard(throttler, open))
  for (let i = 0; i < 4; i++) throttler.check('a')
  expect(throttler.explain('a')[0]?.blockedBy).toBe('cooldown')
  const cooldown = await act(url, 'reset', { key: 'a', policy: 'long' })
  expect(throttler.explain('a')[0]?.blocked).toBe(false)
  await undo(url, cooldown)
  expect(throttler.explain('a')[0]).toMatchObject({ blocked: true, own: 3 })

  let ended: Done
  do {
    throttler.check('b', 2)
    ended = await act(url, 'reset', { key: 'b', policy: 'short' })
  } while (ended.undo === undefined)
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  await undo(url, ended)
  expect(throttler.explain('b')[1]?.own).toBe(0)
})

test('an undo skips policies that no longer exist', async () => {
  const [old, kept] = ['old', 'kept'].map((name) => ({ name, limit: 9, interval: '1h' }) as const)
  const throttler = createThrottler<string, never>({ policies: [old, kept] as never }).start()
  onTestFinished(() => throttler.close())
  const { url } = await serve(dashboard(throttler, open))
  const done = await act(url, 'block', { key: 'a', duration: 60_000 })
  throttler.update([kept] as never)
  expect((await undo(url, done)).status).toBe(200)
  expect(throttler.explain('a').map(({ blocked }) => blocked)).toEqual([false])
})

test('an action without an effect offers no undo', async () => {
  const { url } = await serve(dashboard(throttlerFor(), open))
  expect(await act(url, 'unblock', { key: 'a' })).toEqual({ done: true })
  expect(await act(url, 'reset', { key: 'a' })).toEqual({ done: true })
})

test('an undo works once, for its key, within 10 s', async () => {
  const throttler = throttlerFor()
  const { url } = await serve(dashboard(throttler, open))
  const done = await act(url, 'block', { key: 'a', duration: 600_000 })
  expect((await post(`${url}/undo`, { key: 'b', id: done.undo?.id })).status).toBe(400)
  expect((await undo(url, done)).status).toBe(200)
  expect((await undo(url, done)).status).toBe(400)
  const late = await act(url, 'block', { key: 'a', duration: 600_000 })
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_001 })
  onTestFinished(() => void vi.useRealTimers())
  const response = await undo(url, late)
  expect(await response.json()).toEqual({ error: 'This can no longer be undone. Undo within 10 s.' })
  expect(throttler.explain('a')[0]?.blocked).toBe(true)
})

test('the audit log has the person, the action and the reason, newest first', async () => {
  const throttler = throttlerFor()
  const { url } = await serve(dashboard(throttler, { authorize: () => ({ allow: true, name: 'alice\u202e' }), actions: true }))
  await act(url, 'block', { key: 'a', policy: 'user', duration: 60_000, reason: ' scrapes the\nsearch ' })
  await act(url, 'unblock', { key: 'a' })
  const audit = async () => ((await (await post(`${url}/audit`, { key: '' })).json()) as Audit).entries
  await expect.poll(async () => (await audit()).length).toBe(2)
  expect(await audit()).toEqual([
    { time: expect.any(Number), by: 'alice\\u{202e}', action: 'unblock', key: 'a', reason: '' },
    { time: expect.any(Number), by: 'alice\\u{202e}', action: 'block', policy: 'user', key: 'a', reason: 'scrapes the\\u{a}search' },
  ])
  const long = await post(`${url}/block`, { key: 'a', duration: 1_000, reason: 'x'.repeat(201) })
  expect(await long.json()).toEqual({ error: '"reason" must be a text of at most 200 characters.' })
})

test('many pages share one reading of the audit log', async () => {
  let lists = 0
  const log = { add: async () => {}, list: async () => [`${++lists}`] }
  const memory = memoryStore(new Hub(systemClock))
  const store = backgroundStore({ kind: 'mine', open: (node) => ({ ...memory.open(node), audit: async () => log }) })
  const throttler = createThrottler({ store, policies: [{ name: 'user', limit: 9, interval: '1h' }] }).start()
  onTestFinished(() => throttler.close())
  const { url } = await serve(dashboard(throttler, open))
  const answers = await Promise.all(Array.from({ length: 20 }, () => post(`${url}/audit`, { key: '' })))
  expect(answers.map(({ status }) => status)).toEqual(new Array(20).fill(200))
  expect(lists).toBeLessThan(5)
})

test('without a name the audit log has the session and the address', async () => {
  const { url } = await serve(dashboard(throttlerFor(), { authorize: password(PASSWORD), actions: true }))
  const headers = { cookie: cookieOf(await signIn(`${url}/`)) }
  await post(`${url}/block`, { key: 'a', duration: 60_000 }, headers)
  expect((await post(`${url}/audit`, { key: '' })).status).toBe(401)
  const by = async () => ((await (await post(`${url}/audit`, { key: '' }, headers)).json()) as Audit).entries[0]?.by
  await expect.poll(by).toMatch(/^session [\w-]{6}, 127\.0\.0\.1$/)
})

test.each([
  [{ allow: true, name: 'alice' }, 200],
  [Promise.resolve({ allow: true, name: 'alice' }), 200],
  [{ allow: false, name: 'alice' }, 403],
  [{ name: 'alice' }, 403],
  [{ allow: 1, name: 'alice' }, 403],
  [{ allow: true }, 403],
  [{ allow: true, name: '' }, 403],
])('authorize may return a name only with exactly true: %j', async (result, status) => {
  const authorize = (() => result) as AuthorizeFunction
  const { url } = await serve(dashboard(throttlerFor(), { authorize }))
  expect((await fetch(`${url}/`)).status).toBe(status)
})

test('a search finds the keys that contain the text, and no key that is not counted', async () => {
  const throttler = createThrottler({
    store: memoryStore(new Hub(systemClock)),
    policies: [
      { name: 'user', limit: 10, interval: '1h', coordination: 'local' },
      { name: 'bucket', limit: 20, interval: '1h', algorithm: tokenBucket({ burst: 5 }) },
    ],
  })
  onTestFinished(() => throttler.close())
  for (let i = 0; i < 10_000; i++) throttler.check(`client ${i}`)
  throttler.check('mallory', 3)
  const { url } = await serve(dashboard(throttler, open))
  const find = async (key: string) => (await (await post(`${url}/find`, { key })).json()) as Found
  const found = await find('mal')
  expect(found.parts).toEqual([])
  expect(found.matches).toEqual([
    { policy: 'user', key: 'mallory', used: 3, limit: 10, debt: 0 },
    { policy: 'bucket', key: 'mallory', used: expect.closeTo(3, 1), limit: 5, debt: 0 },
  ])
  expect((await find('mallory')).parts.map(({ remaining }) => Math.floor(remaining))).toEqual([7, 2])
  expect((await find('client')).matches).toHaveLength(50)
  // The units above the burst are a debt, and no use above the limit.
  throttler.charge('mallory', 9, { policy: 'bucket' })
  const bucket = { policy: 'bucket', used: 5, debt: expect.closeTo(7, 1) }
  // The code of buckets with a store is loaded in the background.
  await expect.poll(async () => (await find('mal')).matches[1]).toMatchObject(bucket)
})
