import { createThrottler } from '@weir/core'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { latency } from '../page/format.ts'
import { usedOf } from '../page/standing.ts'
import { dashboard, password } from '../src/index.ts'
import { KeyMemory } from '../src/key-memory.ts'
import { Log } from '../src/log.ts'
import type { Found, View } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { cookieOf, PASSWORD, post, serve, signIn, throttlerFor } from './servers.ts'

const open = { authorize: () => true, actions: true } as const

async function find(url: string, key: string): Promise<Found> {
  return (await (await post(`${url}/find`, { key })).json()) as Found
}

test('a key has its blocks, what it used, and a note', async () => {
  const throttler = throttlerFor()
  const { url } = await serve(dashboard(throttler, open))
  throttler.check('a', 7)
  await find(url, 'a')
  throttler.block('a', '1m', { policy: 'user' })
  throttler.unblock('a', { policy: 'user' })
  throttler.block('b', '1m')
  expect((await post(`${url}/note`, { key: 'a', note: ' asked them on Monday ' })).status).toBe(200)
  const found = await find(url, 'a')
  expect(found.events).toMatchObject([
    { kind: 'unblocked', policy: 'user', cause: 'manual' },
    { kind: 'blocked', policy: 'user', cause: 'manual' },
  ])
  expect(found.parts.map(({ samples }) => samples.map(([, used]) => used))).toEqual([[7], [7]])
  expect(found.note).toBe('asked them on Monday')
  await post(`${url}/note`, { key: 'a', note: '' })
  expect((await find(url, 'a')).note).toBe('')
})

test('a key has used the sum that the processes report, if this process alone sees less', () => {
  const part = { policy: 'user', key: 'a', limit: 20, remaining: 0, reason: 'limit', retryAfterMs: 1, dryRun: false, samples: [] }
  const top = [
    { policy: 'tenant', key: 'a', used: 500, limit: 1_000 },
    { policy: 'user', key: 'a', used: 60, debt: 5, limit: 20 },
  ]
  expect(usedOf(part, { top } as unknown as View)).toEqual({ used: 60, debt: 5 })
  expect(usedOf({ ...part, remaining: 17 }, { top: [] } as unknown as View)).toEqual({ used: 3, debt: 0 })
})

test('times are said as people say them, and two marks of an axis differ', () => {
  const throttler = throttlerFor()
  const log = new Log(throttler, () => {})
  throttler.block('a', '90m', { policy: 'user' })
  expect(log.entries[0]?.text.replaceAll('\u00a0', ' ')).toMatch(/ in user for 1 h 30 min, manually$/)
  log.close()
  expect([750, 1_000, 1_250, 12_500].map((ms) => latency(ms).replaceAll('\u00a0', ' '))).toEqual(['750 ms', '1 s', '1.25 s', '12.5 s'])
})

test('a note is an action: not without the right to act, not from another site, and not too long', async () => {
  const reading = await serve(dashboard(throttlerFor(), { authorize: () => true }))
  expect((await post(`${reading.url}/note`, { key: 'a', note: 'x' })).status).toBe(403)
  const acting = await serve(dashboard(throttlerFor(), { authorize: password(PASSWORD), actions: true }))
  expect((await post(`${acting.url}/note`, { key: 'a', note: 'x' })).status).toBe(401)
  const cookie = cookieOf(await signIn(`${acting.url}/`))
  expect((await post(`${acting.url}/note`, { key: 'a', note: 'x' }, { cookie })).status).toBe(200)
  expect((await post(`${acting.url}/note`, { key: 'a', note: 'x' }, { cookie, 'X-Weir-Dashboard': '0' })).status).toBe(403)
  expect((await post(`${acting.url}/note`, { key: 'a', note: 'x' }, { cookie, 'Sec-Fetch-Site': 'same-site' })).status).toBe(403)
  expect((await post(`${acting.url}/note`, { key: 'a', note: 'x'.repeat(501) }, { cookie })).status).toBe(400)
  expect((await post(`${acting.url}/note`, { key: 'a', note: 7 }, { cookie })).status).toBe(400)
})

test('of a long key little is kept, where no policy counts by keys', async () => {
  const throttler = createThrottler({ policies: [{ key: 'all', limit: 5, interval: '1h', coordination: 'local' }] })
  onTestFinished(() => throttler.close())
  const { url } = await serve(dashboard(throttler, open))
  const long = 'x'.repeat(200_000)
  expect((await post(`${url}/note`, { key: long, note: 'long' })).status).toBe(200)
  const found = await find(url, long)
  expect([found.note, found.key.length]).toEqual(['long', 256])
})

test('a key of ten kilobytes is the one that is counted', async () => {
  const throttler = throttlerFor()
  const { url } = await serve(dashboard(throttler, open))
  const long = 'x'.repeat(10_000)
  throttler.check(long, 5)
  await post(`${url}/block`, { key: long, duration: 60_000, policy: 'tenant' })
  const found = await find(url, long)
  expect(found.key.length).toBeLessThan(300)
  expect(found.parts.map(({ limit, remaining }) => limit - remaining)).toEqual([5, 1_000])
  expect(found.blocked.map(({ policy }) => policy)).toEqual(['tenant'])
  expect((await find(url, found.key)).parts.map(({ reason }) => reason)).toEqual(['ok', 'blocked'])
})

test('whoever blocks a key in all policies blocks it in none where it is not counted', async () => {
  const { createThrottler } = await import('@weir/core')
  const throttler = createThrottler({
    policies: [
      { name: 'each', limit: 10, interval: '1h', coordination: 'local' },
      { name: 'everyone', key: 'all', limit: 10, interval: '1h', coordination: 'local' },
    ],
  })
  onTestFinished(() => throttler.close())
  const { url } = await serve(dashboard(throttler, open))
  await post(`${url}/block`, { key: 'a', duration: 60_000 })
  expect((await find(url, 'a')).blocked.map(({ policy }) => policy)).toEqual(['each'])
  await post(`${url}/block`, { key: 'all', duration: 60_000 })
  expect(throttler.check('b').allowed).toBe(false)
})

test('what is remembered of keys is bounded', () => {
  const throttler = throttlerFor()
  const memory = new KeyMemory(throttler)
  for (let i = 0; i < 3_000; i++) throttler.block('a', '1m', { policy: 'user' })
  expect(memory.events('a').length).toBe(1_000)
  for (let i = 0; i < 400; i++) memory.follow('user', `key ${i}`, 1, 0)
  expect(memory.samples('user', 'key 0')).toEqual([])
  for (let i = 0; i < 500; i++) memory.follow('user', 'hot', i, i * 5_000)
  expect(memory.samples('user', 'hot').length).toBe(120)
  expect(memory.samples('user', 'hot').at(-1)).toEqual([499 * 5_000, 499])
  for (let i = 0; i < 1_500; i++) memory.setNote(`key ${i}`, 'n')
  expect([memory.note('key 0'), memory.note('key 1499')]).toEqual(['', 'n'])
  memory.close()
  throttler.block('later', '1m')
  expect(memory.events('later')).toEqual([])
})

test('text of clients shows all that it is, and each text another thing', () => {
  expect(visible('\u202egnp.exe')).toBe('\\u{202e}gnp.exe')
  expect(visible('a\nb\u0000\u200b')).toBe('a\\u{a}b\\u{0}\\u{200b}')
  expect(visible('مرحبا ünïcødé 漢字 👍 a\\b')).toBe('مرحبا ünïcødé 漢字 👍 a\\b')
  expect(visible('\\u{202e}')).not.toBe(visible('\u202e'))
  const back = (text: string) => text.replace(/\\u\{([0-9a-f]+)\}/g, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom('\\', 'u', '{', '}', '2', '\u202e', '\u0007') })),
      (text) => {
        const shown = visible(text)
        expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        expect(back(shown)).toBe(text)
      },
    ),
    { numRuns: 2_000 },
  )
})
