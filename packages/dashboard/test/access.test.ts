import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { dashboard } from '../src/index.ts'
import { post, serve, throttlerFor } from './servers.ts'

/** Status of a GET with headers that fetch does not let one set. */
function status(url: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
}

describe('without authorize', () => {
  test('the page is shown on this machine', async () => {
    const { url } = await serve(dashboard(throttlerFor()))
    const response = await fetch(`${url}/weir/`)
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('<title>Weir</title>')
  })

  test.each([
    ['another name', { host: 'gateway.example.com' }],
    ['a name that begins like this machine', { host: '127.0.0.1.example.com' }],
    ['a proxy', { 'x-forwarded-for': '127.0.0.1' }],
    ['a proxy that says so by the standard', { forwarded: 'for=127.0.0.1' }],
  ])('but not by %s', async (_what, headers) => {
    const { url } = await serve(dashboard(throttlerFor()))
    expect(await status(`${url}/weir/`, headers)).toBe(403)
    expect(await status(`${url}/weir/events`, headers)).toBe(403)
  })

  test('nobody may act, and nobody can be let to by mistake', async () => {
    const throttler = throttlerFor()
    const { url } = await serve(dashboard(throttler))
    expect((await post(`${url}/weir/block`, { key: 'a', duration: 1_000 })).status).toBe(403)
    expect(() => dashboard(throttler, { actions: true })).toThrow(/needs "authorize"/)
  })
})

describe('with authorize', () => {
  test.each([
    ['false', () => false],
    ['nothing', () => undefined as unknown as boolean],
    ['a promise of false', () => Promise.resolve(false)],
    ['an error', () => Promise.reject(new Error('no'))],
    [
      'an exception',
      () => {
        throw new Error('no')
      },
    ],
    ['something that is not true', () => 'yes' as unknown as boolean],
  ])('%s refuses', async (_what, authorize) => {
    const { url } = await serve(dashboard(throttlerFor(), { authorize, actions: true }))
    expect((await fetch(`${url}/weir/`)).status).toBe(403)
    expect((await fetch(`${url}/weir/events`)).status).toBe(403)
    expect((await post(`${url}/weir/find`, { key: 'a' })).status).toBe(403)
    expect((await post(`${url}/weir/block`, { key: 'a', duration: 1_000 })).status).toBe(403)
  })

  test('who may look need not be allowed to act', async () => {
    const throttler = throttlerFor()
    const { url } = await serve(dashboard(throttler, { actions: true, authorize: (_request, access) => access === 'view' }))
    expect((await fetch(`${url}/weir/`)).status).toBe(200)
    expect((await post(`${url}/weir/block`, { key: 'a', duration: 1_000 })).status).toBe(403)
    expect(throttler.peek('a').allowed).toBe(true)
  })

  test('without actions there are none, whoever asks', async () => {
    const { url } = await serve(dashboard(throttlerFor(), { authorize: () => true }))
    expect((await post(`${url}/weir/block`, { key: 'a', duration: 1_000 })).status).toBe(403)
  })
})

describe('an action of another site', () => {
  test.each([
    ['without the field that only our page sends', { 'X-Weir-Dashboard': '' }],
    ['from another site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['from another subdomain', { 'Sec-Fetch-Site': 'same-site' }],
    ['from another origin, in an old browser', { Origin: 'https://evil.example' }],
    ['from no origin', { Origin: 'null' }],
  ])('is refused: %s', async (_what, headers) => {
    const throttler = throttlerFor()
    const { url } = await serve(dashboard(throttler, { authorize: () => true, actions: true }))
    expect((await post(`${url}/weir/block`, { key: 'a', duration: 1_000 }, headers)).status).toBe(403)
    expect(throttler.peek('a').allowed).toBe(true)
  })
})

test.each([
  [{ authorise: () => true }, /Unknown option "authorise"/],
  [{ authorize: true }, /"authorize"/],
  [{ actions: 'yes' }, /"actions"/],
  [{ path: 'weir' }, /"path"/],
  [{ path: '/weir/' }, /"path"/],
  [{ maxClients: 0 }, /"maxClients"/],
])('options that can not be used are refused: %j', (options, message) => {
  expect(() => dashboard(throttlerFor(), options as never)).toThrow(message)
})
