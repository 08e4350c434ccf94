import { connect } from 'node:net'
import { afterEach, describe, expect, type MockInstance, onTestFinished, test, vi } from 'vitest'
import { dashboard, password } from '../src/index.ts'
import { cookieOf, PASSWORD, post, send, serve, signIn, throttlerFor } from './servers.ts'

const access = password(PASSWORD)
const MINUTE = 60_000
const HOUR = 60 * MINUTE

async function start(options: { authorize?: typeof access; actions?: boolean; maxClients?: number } = {}) {
  const throttler = throttlerFor()
  const handler = dashboard(throttler, { authorize: access, actions: true, ...options })
  onTestFinished(() => handler.close())
  const { url, port } = await serve(handler)
  return { throttler, handler, port, url: `${url}/ops/weir/` }
}

/** Moves the clock of this process, which the dashboard and its sessions use. */
function later(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })
}
afterEach(() => void vi.useRealTimers())

/** A stream that is read until it ends. `ended` has all of its text. */
async function openStream(url: string, cookie: string): Promise<{ status: number; ended: Promise<string>; renewed: string }> {
  const response = await fetch(`${url}events`, { headers: { cookie } })
  return { status: response.status, ended: response.text(), renewed: cookieOf(response) }
}

describe('without a session', () => {
  test('the page is one to sign in, which works without a script and holds nothing else', async () => {
    const { url } = await start()
    const response = await fetch(url)
    const text = await response.text()
    expect(response.status).toBe(401)
    expect(text).toContain('<title>Sign in')
    expect(text).toContain('autocomplete="current-password"')
    expect(text).not.toMatch(/<script|<!--|data-said|(src|href)="?(https?:)?\/\//)
    expect(response.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
    )
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    // With `no-referrer` a browser would send the form from the origin "null".
    expect(response.headers.get('referrer-policy')).toBe('same-origin')
    expect(response.headers.get('set-cookie')).toBeNull()
    expect(await (await fetch(url, { method: 'HEAD' })).text()).toBe('')
  })

  test('everything that a program asks for is answered 401, in JSON', async () => {
    const { url, throttler } = await start()
    const answers = await Promise.all([
      fetch(`${url}events`),
      post(`${url}find`, { key: 'a' }),
      post(`${url}block`, { key: 'a', duration: MINUTE }),
      post(`${url}unblock`, { key: 'a' }),
    ])
    for (const answer of answers) {
      expect(answer.status).toBe(401)
      expect(await answer.json()).toEqual({ error: 'Sign in first.' })
    }
    expect(throttler.peek('a').allowed).toBe(true)
  })
})

describe('the right password', () => {
  test('starts a session that sees and does everything', async () => {
    const { url, throttler } = await start()
    const response = await signIn(url)
    expect(response.status).toBe(303)
    expect(response.headers.get('location')).toBe('./')
    const [cookie] = response.headers.getSetCookie()
    // Without a path a browser uses the folder of the address that it sees.
    expect(cookie).toMatch(/^weir-session-\w{8}=[\w.-]{80,110}; HttpOnly; SameSite=Strict$/)
    const headers = { cookie: cookieOf(response) }
    expect(await (await fetch(url, { headers })).text()).toContain('<title>Weir</title>')
    expect((await send(`${url}events`, { headers })).text).toContain('"signOut":true')
    expect((await post(`${url}block`, { key: 'a', duration: MINUTE }, headers)).status).toBe(200)
    expect(throttler.peek('a').allowed).toBe(false)
  })

  test('no secret is part of the cookie', async () => {
    const { url } = await start()
    const cookie = cookieOf(await signIn(url))
    expect(cookie).not.toContain('correct')
    expect(Buffer.from(cookie, 'base64url').toString('latin1')).not.toContain('correct')
  })

  test('is read from what a parser of the framework has made of the form, too', async () => {
    const handler = dashboard(throttlerFor(), { authorize: access })
    onTestFinished(() => handler.close())
    for (const body of [{ password: PASSWORD }, `password=${encodeURIComponent(PASSWORD)}`, Buffer.from(`password=${PASSWORD}`)]) {
      const { url } = await serve((request, response) => {
        request.resume().on('end', () => handler(Object.assign(request, { body }), response))
      })
      expect((await signIn(`${url}/`)).status).toBe(303)
    }
  })
})

describe('anything else', () => {
  test.each<[string, string, string]>([
    ['a wrong password', 'application/x-www-form-urlencoded', 'password=wrong+wrong+wrong'],
    ['no password', 'application/x-www-form-urlencoded', ''],
    ['another field', 'application/x-www-form-urlencoded', `secret=${encodeURIComponent(PASSWORD)}`],
    ['two passwords', 'application/x-www-form-urlencoded', `password=x&password=${encodeURIComponent(PASSWORD)}`],
    ['a list', 'application/x-www-form-urlencoded', `password[]=${encodeURIComponent(PASSWORD)}`],
    ['bytes that are no text', 'application/x-www-form-urlencoded', 'password=%ff%fe%00%zz'],
    ['JSON', 'application/json', '{"password":{"$ne":""}}'],
  ])('is rejected: %s', async (_what, type, body) => {
    const { url } = await start()
    const response = await fetch(url, { method: 'POST', redirect: 'manual', headers: { 'content-type': type }, body })
    expect(response.status).toBe(401)
    expect(response.headers.get('set-cookie')).toBeNull()
    const text = await response.text()
    expect(text).toContain('<p id="said" role="alert">Wrong password.</p>')
    expect(text).toContain('aria-invalid="true" aria-describedby="said"')
  })

  test('a password in the address is no password', async () => {
    const { url } = await start()
    expect((await fetch(`${url}?password=${encodeURIComponent(PASSWORD)}`)).status).toBe(401)
    expect((await fetch(`${url}?password=${encodeURIComponent(PASSWORD)}`, { method: 'POST' })).status).toBe(401)
  })

  test.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another subdomain', { 'sec-fetch-site': 'same-site' }],
    ['another origin', { origin: 'https://evil.example' }],
    ['no origin', { origin: 'null' }],
  ])('a form of %s signs nobody in, and uses up no attempt', async (_what, headers) => {
    const { url } = await start()
    for (let i = 0; i < 20; i++) {
      const body = new URLSearchParams({ password: PASSWORD }).toString()
      const response = await send(url, { method: 'POST', headers, body })
      expect(response.status).toBe(403)
      expect(response.headers['set-cookie']).toBeUndefined()
    }
    expect((await signIn(url)).status).toBe(303)
  })

  test('a long body is not read', async () => {
    const { url } = await start()
    const long = new URLSearchParams({ password: 'x'.repeat(5_000) }).toString()
    expect((await fetch(url, { method: 'POST', body: long })).status).toBe(413)
    const chunked = new Blob([long]).stream()
    expect((await fetch(url, { method: 'POST', body: chunked, duplex: 'half' } as RequestInit)).status).toBe(413)
  })

  test('a body that does not come is not waited for', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { port } = await start()
    const socket = connect(port, '127.0.0.1')
    let heard = ''
    socket.setEncoding('utf8').on('data', (text: string) => {
      heard += text
    })
    socket.write('POST /weir/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\npassword=')
    while (!socket.closed) {
      await vi.advanceTimersByTimeAsync(1_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(heard).toMatch(/^HTTP\/1.1 408 /)
    expect(heard).toContain('The body took too long.')
  })
})

describe('attempts', () => {
  test('are few from one address: then even the right password waits', async () => {
    const { url } = await start()
    const statuses: number[] = []
    while (!statuses.includes(429)) statuses.push((await signIn(url, 'wrong wrong wrong')).status)
    expect(statuses).toEqual([...Array(10).fill(401), 429])
    const response = await signIn(url)
    expect(response.status).toBe(429)
    expect(response.headers.get('set-cookie')).toBeNull()
    const seconds = Number(response.headers.get('retry-after'))
    expect(seconds).toBeGreaterThanOrEqual(1)
    // The rest of this minute and a tenth of the next one. Then the ten attempts of this minute count as nine.
    expect(seconds).toBeLessThanOrEqual(66)
    expect(await response.text()).toContain('Too many attempts. Try again in')
  })

  test('do not count against those who have signed in', async () => {
    const { url } = await start()
    const headers = { cookie: cookieOf(await signIn(url)) }
    while ((await signIn(url, 'wrong wrong wrong')).status !== 429);
    expect((await fetch(url, { headers })).status).toBe(200)
  })
})

describe('a session', () => {
  test('is one at all processes with the same password', async () => {
    const [one, other] = [await start(), await start({ authorize: password(PASSWORD) })]
    const cookie = cookieOf(await signIn(one.url))
    expect((await fetch(other.url, { headers: { cookie } })).status).toBe(200)
  })

  test('is none with another password, even under its name', async () => {
    const [one, other] = [await start(), await start({ authorize: password(`${PASSWORD}!`) })]
    const [, token] = cookieOf(await signIn(one.url)).split('=')
    const [name] = cookieOf(await signIn(other.url, `${PASSWORD}!`)).split('=')
    expect((await fetch(other.url, { headers: { cookie: `${name}=${token}` } })).status).toBe(401)
  })

  test('is found among other cookies, some of them with its name', async () => {
    const { url } = await start()
    const cookie = cookieOf(await signIn(url))
    const [name] = cookie.split('=')
    expect((await fetch(url, { headers: { cookie: `a=b; ${name}=old; ${cookie};c=d` } })).status).toBe(200)
  })

  test.each<[string, (token: string) => string]>([
    ['nothing', () => ''],
    ['without its signature', (token) => token.slice(0, token.lastIndexOf('.'))],
    ['with another signature', (token) => `${token.slice(0, token.lastIndexOf('.'))}.${'A'.repeat(43)}`],
    ['cut short', (token) => token.slice(0, -1)],
    ['longer', (token) => `${token}A`],
    ['with another beginning', (token) => token.replace(/^\w+/, (Date.now() + HOUR).toString(36))],
    ['with another time', (token) => token.replace(/^(\w+)\.\w+/, `$1.${(Date.now() + 1).toString(36)}`)],
    ['with another id', (token) => token.replace(/\.[\w-]{22}\./, `.${'A'.repeat(22)}.`)],
    ['with its times swapped for others of the same text', (token) => token.replace(/^(\w)(\w+)\.(\w)/, '$1.$2$3')],
    ['in quotes', (token) => `"${token}"`],
    ['huge', () => 'a'.repeat(12_000)],
  ])('is none: %s', async (_what, forge) => {
    const { url } = await start()
    const [name, token = ''] = cookieOf(await signIn(url)).split('=')
    expect((await fetch(url, { headers: { cookie: `${name}=${forge(token)}` } })).status).toBe(401)
    expect((await fetch(`${url}events`, { headers: { cookie: `${name}=${forge(token)}` } })).status).toBe(401)
  })

  test('ends an hour after the dashboard was last open', async () => {
    const { url } = await start()
    const cookie = cookieOf(await signIn(url))
    later(HOUR - 1_000)
    expect((await fetch(url, { headers: { cookie } })).status).toBe(200)
    later(2_000)
    expect((await fetch(url, { headers: { cookie } })).status).toBe(401)
  })

  test('goes on while the dashboard is open, for twelve hours at most', async () => {
    const { url } = await start()
    let cookie = cookieOf(await signIn(url))
    let hours = 0
    for (; hours < 20; hours += 0.5) {
      const response = await fetch(url, { headers: { cookie } })
      if (response.status === 401) break
      cookie = cookieOf(response) || cookie
      later(HOUR / 2)
    }
    expect(hours).toBe(12)
  })

  test('is not renewed with every request', async () => {
    const { url } = await start()
    const cookie = cookieOf(await signIn(url))
    expect((await fetch(url, { headers: { cookie } })).headers.getSetCookie()).toEqual([])
    later(2 * MINUTE)
    expect((await fetch(url, { headers: { cookie } })).headers.getSetCookie()).toHaveLength(1)
    const stream = await fetch(`${url}events`, { headers: { cookie } })
    expect(stream.headers.getSetCookie()).toHaveLength(1)
    await stream.body?.cancel()
  })

  test('that comes from the future is none', async () => {
    const { url } = await start()
    later(5 * MINUTE)
    const cookie = cookieOf(await signIn(url))
    vi.useRealTimers()
    expect((await fetch(url, { headers: { cookie } })).status).toBe(401)
  })

  test('ends its streams when it ends', async () => {
    const { url } = await start()
    const cookie = cookieOf(await signIn(url))
    const { ended } = await openStream(url, cookie)
    later(12 * HOUR)
    expect(await ended).toContain('event: view')
  })

  test('is over at once when somebody signs out: the cookie goes, and all its streams, but no others', async () => {
    const { url } = await start()
    const [cookie, other] = [cookieOf(await signIn(url)), cookieOf(await signIn(url))]
    const streams = [await openStream(url, cookie), await openStream(url, cookie)]
    const stays = await fetch(`${url}events`, { headers: { cookie: other } })
    const response = await post(`${url}sign-out`, {}, { cookie })
    expect(response.status).toBe(200)
    expect(response.headers.getSetCookie()).toEqual([expect.stringMatching(/^weir-session-\w{8}=; HttpOnly; SameSite=Strict; Max-Age=0$/)])
    await Promise.all(streams.map(({ ended }) => ended))
    const reader = stays.body?.getReader()
    expect((await reader?.read())?.done).toBe(false)
    await reader?.cancel()
  })

  test('is not ended by another site', async () => {
    const { url } = await start()
    const cookie = cookieOf(await signIn(url))
    for (const headers of [{ 'X-Weir-Dashboard': '' }, { 'Sec-Fetch-Site': 'cross-site' }]) {
      const response = await post(`${url}sign-out`, {}, { cookie, ...headers })
      expect(response.status).toBe(403)
      expect(response.headers.getSetCookie()).toEqual([])
    }
  })
})

test('nothing that was typed or signed is printed', async () => {
  const written: string[] = []
  const spies: MockInstance[] = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockImplementation((text) => written.push(String(text)) > 0),
  )
  try {
    const { url } = await start()
    await signIn(url, 'wrong wrong wrong')
    await signIn(url)
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
  expect(written.join('')).not.toMatch(/wrong|correct|weir-session/)
})

test('a dashboard that is closed answers so, whatever it is asked', async () => {
  const { url, handler } = await start()
  const cookie = cookieOf(await signIn(url))
  handler.close()
  expect((await fetch(url)).status).toBe(503)
  expect((await signIn(url)).status).toBe(503)
  expect((await fetch(`${url}events`, { headers: { cookie } })).status).toBe(503)
})
