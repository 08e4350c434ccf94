import { IncomingMessage } from 'node:http'
import type { WeirError } from '@weir/core'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Access, dashboard } from '../src/index.ts'
import { post, send, serve, throttlerFor } from './servers.ts'

const AN_ACTION = { key: 'a', duration: 1_000 }

describe('without authorize', () => {
  test.each([
    ['nothing else', undefined],
    ['no options', {}],
    ['actions', { actions: true }],
    ['an explicit undefined', { authorize: undefined }],
  ])('no dashboard is made, and the three choices are shown: with %s', (_what, options) => {
    expect(() => dashboard(throttlerFor(), options as never)).toThrow(/"authorize" is missing.*password\(.*\(request, access\) =>.*'none'/s)
  })
})

describe("authorize: 'none'", () => {
  test.each(['localhost', 'LOCALHOST:8080', 'weir.localhost:80', '127.0.0.1', '127.0.0.1:9090', '10.0.0.7:80', '[::1]', '[::1]:9090'])(
    'everybody sees it who names the server %s',
    async (host) => {
      const { url } = await serve(dashboard(throttlerFor(), { authorize: 'none', actions: true }))
      expect((await send(`${url}/weir/`, { headers: { host } })).text).toContain('<title>Weir</title>')
      expect((await send(`${url}/weir/events`, { headers: { host } })).status).toBe(200)
    },
  )

  // The owner of a name may point it to this machine. A page of that site could then read answers with its visitor's browser.
  test.each(['evil.example', 'evil.example:9090', '127.0.0.1.evil.example', 'localhost.evil.example', 'evil.example:localhost', '..'])(
    'nobody who names it %j',
    async (host) => {
      const throttler = throttlerFor()
      const { url } = await serve(dashboard(throttler, { authorize: 'none', actions: true }))
      const rejected = await send(`${url}/weir/`, { headers: { host } })
      expect(rejected.status).toBe(403)
      expect(rejected.text).toContain("With authorize: 'none'")
      expect((await send(`${url}/weir/events`, { headers: { host } })).status).toBe(403)
      const headers = { host, origin: `http://${host}`, 'x-weir-dashboard': '1', 'sec-fetch-site': 'same-origin' }
      const acted = await send(`${url}/weir/block`, { method: 'POST', headers, body: JSON.stringify(AN_ACTION) })
      expect(acted.status).toBe(403)
      expect(throttler.peek('a').allowed).toBe(true)
    },
  )

  test('a proxy on this machine that adds no field is no way in, unless it hands on a name that is safe', async () => {
    const { url } = await serve(dashboard(throttlerFor(), { authorize: 'none' }))
    expect((await send(`${url}/weir/`, { headers: { host: 'gateway.example.com' } })).status).toBe(403)
  })
})

const never = new Promise<boolean>(() => {})
/** Promises of `late` that have not settled yet. */
let open = 0
function late(settle: (resolve: (value: boolean) => void, reject: (error: Error) => void) => void): () => Promise<boolean> {
  return () =>
    new Promise((resolve, reject) => {
      open++
      setTimeout(() => {
        open--
        settle(resolve, reject)
      }, 1_100)
    })
}

describe('a function', () => {
  const thrower = (): never => {
    throw new Error('no')
  }
  test.each<[string, () => unknown, boolean]>([
    ['false', () => false, false],
    ['a promise of false', () => Promise.resolve(false), false],
    ['nothing', () => undefined, true],
    ['a promise of nothing', async () => {}, true],
    ['something that is not true', () => 'yes', true],
    ['1', () => 1, true],
    ['an object', () => ({ allowed: true }), true],
    ['a Boolean object', () => new Boolean(true), true],
    ['a promise of something that is not true', async () => 'true', true],
    ['a rejection', () => Promise.reject(new Error('no')), true],
    ['a rejection with nothing', () => Promise.reject(), true],
    ['an exception', thrower, true],
    ['a promise that never settles', () => never, true],
    ['true, but too late', late((resolve) => resolve(true)), true],
    ['a rejection, but too late', late((_resolve, reject) => reject(new Error('late'))), true],
    // biome-ignore lint/suspicious/noThenProperty: what is no promise may still have one
    ['an object with a `then` that throws', () => ({ then: thrower }), true],
    // biome-ignore lint/suspicious/noThenProperty: as above
    ['an object with a `then` that does nothing', () => ({ then: () => {} }), true],
    [
      'an object whose `then` can not be read',
      () =>
        Object.defineProperty({}, 'then', {
          get: thrower,
        }),
      true,
    ],
  ])('%s rejects; the operator is told of what is a mistake', { timeout: 20_000 }, async (_what, authorize, mistake) => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    onTestFinished(() => void process.off('unhandledRejection', unhandled))
    const throttler = throttlerFor()
    const warnings: WeirError[] = []
    throttler.on('warning', ({ error }) => warnings.push(error as WeirError))
    const { url } = await serve(dashboard(throttler, { authorize: authorize as () => boolean, actions: true }))
    const answers = await Promise.all([
      fetch(`${url}/weir/`),
      fetch(`${url}/weir/events`),
      post(`${url}/weir/find`, { key: 'a' }),
      post(`${url}/weir/block`, AN_ACTION),
    ])
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403])
    expect(throttler.peek('a').allowed).toBe(true)
    expect(warnings.map(({ code }) => code)).toEqual(mistake ? ['WEIR_WARN_OPTION_FUNCTION_FAILED'] : [])
    await expect.poll(() => open, { timeout: 5_000 }).toBe(0)
    await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).not.toHaveBeenCalled()
  })

  test('true lets in, and a promise of it, and it is told what for', async () => {
    const asked: Access[] = []
    const authorize = async (request: unknown, access: Access) => {
      expect(request).toBeInstanceOf(IncomingMessage)
      asked.push(access)
      return true
    }
    const { url } = await serve(dashboard(throttlerFor(), { authorize, actions: true }))
    expect((await fetch(`${url}/weir/`)).status).toBe(200)
    expect((await send(`${url}/weir/events`)).status).toBe(200)
    expect((await post(`${url}/weir/find`, { key: 'a' })).status).toBe(200)
    expect((await post(`${url}/weir/block`, AN_ACTION)).status).toBe(200)
    expect(asked).toEqual(['view', 'view', 'act', 'view', 'act'])
    expect((await send(`${url}/weir/`, { headers: { host: 'gateway.example.com' } })).status).toBe(200)
  })

  test('who may look need not be allowed to act', async () => {
    const throttler = throttlerFor()
    const { url } = await serve(dashboard(throttler, { actions: true, authorize: (_request, access) => access === 'view' }))
    expect((await fetch(`${url}/weir/`)).status).toBe(200)
    expect((await send(`${url}/weir/events`)).text).toContain('"actions":false')
    expect((await post(`${url}/weir/block`, AN_ACTION)).status).toBe(403)
    expect(throttler.peek('a').allowed).toBe(true)
  })

  test('there is nothing to sign in to or out of', async () => {
    const { url } = await serve(dashboard(throttlerFor(), { authorize: () => true }))
    expect((await post(`${url}/weir/`, {})).status).toBe(405)
    expect((await post(`${url}/weir/sign-out`, {})).status).toBe(405)
    expect((await send(`${url}/weir/events`)).text).toContain('"signOut":false')
  })
})

test('without actions there are none, whoever asks', async () => {
  const { url } = await serve(dashboard(throttlerFor(), { authorize: () => true }))
  expect((await post(`${url}/weir/block`, AN_ACTION)).status).toBe(403)
})

describe('another site', () => {
  test.each([
    ['without the field that only our page sends', { 'X-Weir-Dashboard': '' }],
    ['from another site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['from another subdomain', { 'Sec-Fetch-Site': 'same-site' }],
    ['from somewhere that browsers do not name so', { 'Sec-Fetch-Site': 'trust-me' }],
    ['from another origin, in an old browser', { Origin: 'https://evil.example' }],
    ['from no origin', { Origin: 'null' }],
  ])('can not act: %s', async (_what, headers) => {
    const throttler = throttlerFor()
    const { url } = await serve(dashboard(throttler, { authorize: () => true, actions: true }))
    expect((await post(`${url}/weir/block`, AN_ACTION, headers)).status).toBe(403)
    expect(throttler.peek('a').allowed).toBe(true)
  })

  test('can not take the places of streams', async () => {
    const { url } = await serve(dashboard(throttlerFor(), { authorize: 'none' }))
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { origin: 'https://evil.example' }])
      expect((await send(`${url}/weir/events`, { headers })).status).toBe(403)
    for (const headers of [{ 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }, {}])
      expect((await send(`${url}/weir/events`, { headers })).status).toBe(200)
  })

  test('can link to the page', async () => {
    const { url } = await serve(dashboard(throttlerFor(), { authorize: 'none' }))
    expect((await send(`${url}/weir/`, { headers: { 'sec-fetch-site': 'cross-site' } })).status).toBe(200)
  })
})

test.each([
  [{ authorise: () => true }, /Unknown option "authorise"/],
  [{ authorize: true }, /"authorize"/],
  [{ authorize: 'a password as it is' }, /"authorize" is a string. Use password\("…"\)/],
  [{ authorize: 'None' }, /"authorize"/],
  [{ authorize: null }, /"authorize"/],
  [{ authorize: { kind: 'password' } }, /"authorize"/],
  [{ authorize: 'none', actions: 'yes' }, /"actions"/],
  [{ authorize: 'none', path: 'weir' }, /"path"/],
  [{ authorize: 'none', path: '/weir/' }, /"path"/],
  [{ authorize: 'none', maxClients: 0 }, /"maxClients"/],
  ['none', /^Option "dashboard" is "none"\. Use an object such as/],
])('options that can not be used are rejected: %j', (options, message) => {
  expect(() => dashboard(throttlerFor(), options as never)).toThrow(message)
})

test('a middleware, a promise and nothing are no throttler', () => {
  for (const wrong of [() => {}, Promise.resolve(throttlerFor()), undefined, null])
    expect(() => dashboard(wrong as never, { authorize: 'none' })).toThrow(
      /^Option "throttler" is .* Use the throttler that createThrottler\(\) returned, or middleware\.throttler\./,
    )
})
