import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import { snapshot } from '@weir/core/inspect'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Password } from '../src/access/password.ts'
import { newSession, tokenOf } from '../src/access/session.ts'
import { dashboard, password } from '../src/index.ts'
import { cookieOf, PASSWORD, serve, signIn, throttlerFor } from './servers.ts'

const HOUR = 3_600_000
const other = new Password('another long password')
const own = new Password(PASSWORD)
const sign = (text: string): string => own.sign(`session ${text}`)

/** Sends bytes, and reads until the server ends the connection or announces no more data. */
function exchange(port: number, bytes: readonly string[], cut: boolean): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let heard = ''
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      heard += text
      if (heard.length > 200_000) socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(heard))
    for (const part of bytes) socket.write(part, 'latin1')
    if (cut) socket.destroy()
    else socket.end()
  })
}

const anyMethod = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('GET', 'POST', 'HEAD') },
  { weight: 1, arbitrary: fc.constantFrom('PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'PROPFIND', 'QUERY', 'get') },
)
const anySegment = fc.oneof(
  fc.constantFrom(
    '',
    'weir',
    'events',
    'block',
    'unblock',
    'reset',
    'find',
    'sign-out',
    '.',
    '..',
    '%2e%2e',
    '%',
    '%ff',
    '%00',
    '\\',
    ';',
    'events?',
    '#',
  ),
  fc.webSegment(),
  fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replace(/[^!-ÿ]/g, '')),
)
const anyTarget = fc.oneof(
  { weight: 6, arbitrary: fc.array(anySegment, { maxLength: 4 }).map((parts) => `/${parts.join('/')}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '*',
      'http://evil.example/weir/',
      '//evil.example/',
      '/weir/?password=x',
      '/weir//events',
      `/${'a/'.repeat(3_000)}`,
    ),
  },
)

const token = (at: number): string => tokenOf({ ...newSession(at), seen: at }, sign)
/** Invalid session cookies. `name` is the cookie's name. */
const anyToken = fc.oneof(
  fc.constant(''),
  fc.string({ maxLength: 200 }),
  fc.string({ maxLength: 9_000, minLength: 5_000 }),
  // Tokens of another password, expired tokens, tokens from the future, and tokens with the wrong key or purpose.
  fc.constantFrom(
    tokenOf(newSession(Date.now()), (text) => other.sign(`session ${text}`)),
    token(Date.now() - 13 * HOUR),
    token(Date.now() - 2 * HOUR),
    token(Date.now() + 2 * HOUR),
    token(0),
    tokenOf(newSession(Date.now()), (text) => own.sign(text)),
    tokenOf(newSession(Date.now()), (text) => createHmac('sha256', '').update(text).digest('base64url')),
    tokenOf({ id: 'x', started: Date.now(), seen: Date.now() }, sign),
    tokenOf({ ...newSession(0), started: Number.NaN, seen: Number.NaN }, sign),
    tokenOf({ ...newSession(0), started: Number.POSITIVE_INFINITY, seen: Number.POSITIVE_INFINITY }, sign),
    tokenOf({ ...newSession(0), started: -1, seen: Date.now() }, sign),
  ),
  // A valid token with one changed character.
  fc.tuple(fc.nat(200), fc.string({ minLength: 1, maxLength: 1 })).map(([at, character]) => {
    const good = token(Date.now())
    const place = at % good.length
    return good[place] === character ? '' : good.slice(0, place) + character + good.slice(place + 1)
  }),
  fc.nat(120).map((length) => {
    const good = token(Date.now())
    return good.slice(0, length % good.length)
  }),
)

const clean = (text: string): string => text.replace(/[^ -ÿ]/g, ' ')
const anyField = (cookie: string) =>
  fc.oneof(
    anyToken.map((text) => `Cookie: ${cookie}=${clean(text)}`),
    fc
      .array(anyToken, { maxLength: 4 })
      .map((list) => `Cookie: ${list.map((text) => `${cookie}=${clean(text).slice(0, 1_500)}`).join('; ')}`),
    fc.constantFrom(
      'X-Weir-Dashboard: 1',
      'Sec-Fetch-Site: same-origin',
      'Sec-Fetch-Site: cross-site',
      'Origin: http://localhost',
      'Origin: null',
      'Origin: http://[',
      'Accept-Encoding: gzip',
      'X-Forwarded-For: 127.0.0.1',
      'X-Forwarded-Proto: https',
      'Authorization: Basic d2VpcjpwYXNzd29yZA==',
      'Content-Type: application/x-www-form-urlencoded',
      'Content-Type: application/json',
      'Content-Type: multipart/form-data; boundary=',
      'Expect: 100-continue',
      'Upgrade: websocket',
      'Connection: upgrade',
    ),
    fc
      .tuple(fc.constantFrom('Cookie', 'Origin', 'Accept', 'Accept-Encoding', 'X-Other'), fc.string({ unit: 'binary', maxLength: 300 }))
      .map(([name, value]) => `${name}: ${clean(value)}`),
  )

const anyBody = fc.oneof(
  fc.constantFrom('', 'password=', 'password', '&&&=', 'password=%', `password=${'x'.repeat(4_100)}`, `password=${'x'.repeat(60_000)}`),
  fc.constantFrom('{}', '[]', 'null', '{"key":"a","duration":60000}', '{"key":{}}', '{"__proto__":1}', '{"password":["x"]}', '{'),
  fc.string({ maxLength: 300 }),
  fc.string({ maxLength: 60 }).map((text) => `password=${encodeURIComponent(text)}`),
)
const anyFraming = fc.constantFrom('length', 'chunked', 'too short', 'too long', 'both', 'none')

function frame(framing: string, body: string): { fields: string[]; bytes: string[] } {
  const length = Buffer.byteLength(body, 'latin1')
  const chunks = [`${length.toString(16)}\r\n`, body, '\r\n0\r\n\r\n']
  switch (framing) {
    case 'chunked':
      return { fields: ['Transfer-Encoding: chunked'], bytes: length === 0 ? ['0\r\n\r\n'] : chunks }
    case 'too short':
      return { fields: [`Content-Length: ${length + 5}`], bytes: [body] }
    case 'too long':
      return { fields: [`Content-Length: ${Math.max(0, length - 5)}`], bytes: [body] }
    case 'both':
      return { fields: [`Content-Length: ${length}`, 'Transfer-Encoding: chunked'], bytes: chunks }
    case 'none':
      return { fields: [], bytes: [body] }
    default:
      return { fields: [`Content-Length: ${length}`], bytes: [body] }
  }
}

test('no request but the password lets in, none is answered with 5xx, and the server stays', { timeout: 120_000 }, async () => {
  const failed = vi.fn()
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, failed)
    onTestFinished(() => void process.off(event, failed))
  }
  const throttler = throttlerFor()
  const handler = dashboard(throttler, { authorize: password(PASSWORD), actions: true })
  onTestFinished(() => handler.close())
  const { url, port } = await serve(handler)
  const cookie = cookieOf(await signIn(`${url}/weir/`))
  const name = cookie.split('=')[0] as string
  const anyRequest = fc.record({
    method: anyMethod,
    target: anyTarget,
    fields: fc.array(anyField(name), { maxLength: 6 }),
    body: anyBody,
    framing: anyFraming,
    cut: fc.boolean(),
  })
  let answered = 0
  await fc.assert(
    fc.asyncProperty(fc.array(anyRequest, { minLength: 1, maxLength: 8 }), async (requests) => {
      const answers = await Promise.all(
        requests.map(({ method, target, fields, body, framing, cut }) => {
          const { fields: framed, bytes } = frame(framing, body)
          const head = [`${method} ${target} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...fields, ...framed]
          return exchange(port, [`${head.join('\r\n')}\r\n\r\n`, ...bytes], cut)
        }),
      )
      for (const heard of answers) {
        for (const [, status] of heard.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
          answered++
          expect(Number(status)).toBeLessThan(500)
        }
        // No dashboard, stream, answer to an action or session may be sent. A sign-out is allowed, because it only removes a cookie.
        const signedOut = /Set-Cookie: weir-session-\w+=; [^\r]*Max-Age=0/.test(heard)
        expect(signedOut ? heard.replace('{"done":true}', '') : heard).not.toMatch(
          /<title>Weir<|event:|"done"|"parts"|weir-session-\w+=[^;]/,
        )
      }
      expect(failed).not.toHaveBeenCalled()
    }),
    { numRuns: 400 },
  )
  expect(answered).toBeGreaterThan(300)
  expect(snapshot(throttler).blocked).toEqual([])
  // The signed-in client can still use the dashboard.
  expect(await (await fetch(`${url}/weir/`, { headers: { cookie } })).text()).toContain('<title>Weir</title>')
})
