import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createGuard } from '../../../src/http/guard.ts'
import { addresses } from '../../../src/http/request/address-list.ts'
import { nodeReader } from '../../../src/http/request/node-reader.ts'
import type { Connection, RequestReader } from '../../../src/http/request/reader.ts'
import { Rules } from '../../../src/http/request/rules.ts'
import type { WeirError } from '../../../src/report/errors.ts'
import { type FakeRequest, fakeReader } from '../fake-request.ts'

interface Proxied extends FakeRequest {
  readonly connection?: Connection
}

/** Evaluates requests that are counted by address, and returns the warnings. */
function warningsOf(requests: readonly Proxied[], more: Partial<RequestReader<Proxied>> = {}): string[] {
  const reported: WeirError[] = []
  const reader: RequestReader<Proxied> = { ...fakeReader, socket: ({ connection }) => connection, ...more }
  const rules = new Rules<Proxied>([{ key: 'ip' }], reader, { report: (error) => reported.push(error) })
  for (const one of requests) rules.evaluate(one)
  expect(reported.every(({ code }) => code === 'WEIR_WARN_TRUST_PROXY')).toBe(true)
  return reported.map(({ message }) => message)
}

const proxy = { remoteAddress: '10.0.0.1', localAddress: '10.0.0.9', destroyed: false }
const unix = { destroyed: false }
const direct: Proxied = { ip: '10.0.0.1', connection: proxy }
const howToTrust = (_: Proxied, withoutAddress: boolean) => (withoutAddress ? 'Trust the socket.' : 'Trust 10.0.0.1.')

test.each([
  ['x-forwarded-for', 'Trust 10.0.0.1.'],
  ['forwarded', `Have the proxy send X-Forwarded-For: by default frameworks don't read "forwarded".`],
  ['x-real-ip', `Have the proxy send X-Forwarded-For: by default frameworks don't read "x-real-ip".`],
])('a "%s" that the framework ignores is reported once, with the next step', (name, step) => {
  const proxied = { ...direct, headers: { [name]: '192.0.2.1' } }
  // Health checks of the proxy, without the header, come first.
  const found = warningsOf([...Array.from({ length: 100 }, () => direct), proxied, proxied], { howToTrust })
  expect(found).toHaveLength(1)
  expect(found[0]).toContain(`A request from 10.0.0.1 has the header "${name}"`)
  expect(found[0]).toContain('If your service is not behind a proxy, a client sent the header: ignore this warning.')
  expect(found[0]).toContain(`${step} See @weir/core/docs/errors/weir_warn_trust_proxy.md`)
})

test('a header that the framework follows is not reported', () => {
  expect(warningsOf([{ ip: '192.0.2.1', connection: proxy, headers: { 'x-forwarded-for': '192.0.2.1' } }])).toEqual([])
  // A client on the proxy's own machine, through a trusted proxy.
  for (const listed of ['10.0.0.1', ' 10.0.0.1, 10.0.0.1'])
    expect(warningsOf([{ ...direct, headers: { 'x-forwarded-for': listed } }])).toEqual([])
  // Two untrusted proxies on one machine.
  expect(warningsOf([{ ...direct, headers: { 'x-forwarded-for': '192.0.2.1, 10.0.0.1' } }])).toHaveLength(1)
})

test('what a client sends is not in a warning, or can not be taken for more than it is', () => {
  const hostile = 'x\u001b[31m\nweir: all is well'
  const found = warningsOf([
    { ...direct, headers: { 'x-forwarded-for': hostile } },
    { ip: hostile.repeat(10), connection: proxy },
  ])
  expect(found).toHaveLength(2)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that none is there
  for (const message of found) expect(message).not.toMatch(/[\x00-\x1f]/)
  expect(found[0]).not.toContain('all is well')
  expect(found[1]?.length).toBeLessThan(500)
})

test('no header is searched for beyond the first requests', () => {
  let read = 0
  const header = (): undefined => {
    read++
    return undefined
  }
  warningsOf(
    Array.from({ length: 20_000 }, () => direct),
    { header },
  )
  expect(read).toBe(30_000)
})

test.each([
  [
    'a text that is no address',
    { ip: 'garbage', connection: proxy },
    'The framework uses "garbage" as the address of a client',
    'Trust 10.0.0.1.',
  ],
  [
    'a Unix socket whose proxy sends no header',
    { connection: unix },
    'A request came over a Unix socket, which has no address.',
    'Trust the socket. Have the proxy send X-Forwarded-For.',
  ],
  [
    'a Unix socket whose proxy is not trusted',
    { connection: unix, headers: { 'x-forwarded-for': '192.0.2.1' } },
    'A request came over a Unix socket, which has no address.',
    'Trust the socket.',
  ],
  ['no connection', {}, 'A request came without a connection that Weir can read.', 'Trust the socket.'],
] as const)('the key "unknown" is reported once, with its cause and the next step: %s', (_, request: Proxied, why, step) => {
  const found = warningsOf([request, { ...request, ...(request.ip !== undefined && { ip: 'more garbage' }) }], { howToTrust })
  expect(found).toHaveLength(1)
  expect(found[0]).toContain(why)
  expect(found[0]).toContain('All such requests share the key "unknown".')
  expect(found[0]?.includes(step), found[0]).toBe(true)
})

test('an address that could not be found is reported once', () => {
  const ip = () => {
    throw new Error('no platform')
  }
  expect(warningsOf([direct, direct], { ip })).toEqual([
    expect.stringContaining(
      'The address of a client could not be found (no platform). All such requests share the key "unknown". Check the function',
    ),
  ])
  expect(warningsOf([{ connection: { destroyed: true } }], { ip })).toEqual([])
})

test('a client that has gone is no reason for a warning', () => {
  expect(warningsOf([{ connection: { destroyed: true } }])).toEqual([])
  // The client has reset the connection, but the process has not noticed it yet.
  expect(warningsOf([{ connection: { destroyed: false, localAddress: '10.0.0.9' } }])).toEqual([])
})

test('functions of the framework that throw disturb no request', () => {
  const broken = (): never => {
    throw new Error('broken')
  }
  const requests = [{ ip: '10.0.0.1', connection: proxy, headers: { 'x-forwarded-for': '192.0.2.1' } }, { ip: 'garbage' }]
  for (const more of [{ socket: broken }, { forgeable: broken }, { howToTrust: broken }]) {
    const rules = new Rules<Proxied>(
      [{ key: 'ip' }],
      { ...fakeReader, socket: ({ connection }) => connection, ...more },
      { report: () => {} },
    )
    expect(
      requests.map((request) => {
        rules.evaluate(request)
        return rules.keys[0]
      }),
    ).toEqual(['10.0.0.1', 'unknown'])
  }
})

test.each(['allow', 'deny'])('the list "%s" is held against the address of a proxy, with a warning', (option) => {
  const reader: RequestReader<Proxied> = { ...fakeReader, socket: ({ connection }) => connection }
  const guard = createGuard<Proxied, []>({ key: 'all', limit: 9, interval: '1h', [option]: addresses('10.0.0.0/8') }, reader)
  const warnings: WeirError[] = []
  guard.throttler.on('warning', ({ error }) => warnings.push(error))
  for (let i = 0; i < 2; i++) void guard.check({ ...direct, headers: { 'x-forwarded-for': '192.0.2.1' } })
  expect(warnings.map(({ code }) => code)).toEqual(['WEIR_WARN_TRUST_PROXY'])
})

test('requests over a Unix socket share a key, with a warning', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-'))
  const guard = createGuard<IncomingMessage, []>({ key: 'ip', limit: 1, interval: '1h' }, nodeReader)
  const warnings: string[] = []
  guard.throttler.on('warning', ({ error }) => warnings.push(error.message))
  const server = createServer(async (req, res) => {
    const decision = await guard.check(req)
    res.end(`${decision?.key} ${decision?.allowed}`)
  })
  server.listen(join(folder, 'socket'))
  try {
    await once(server, 'listening')
    const ask = async () => {
      const [response] = (await once(request({ socketPath: join(folder, 'socket'), path: '/' }).end(), 'response')) as [IncomingMessage]
      return (await response.toArray()).join('')
    }
    expect([await ask(), await ask()]).toEqual(['unknown true', 'unknown false'])
    expect(warnings).toEqual([expect.stringContaining('Unix socket')])
  } finally {
    server.close()
    await guard.throttler.close()
    rmSync(folder, { recursive: true })
  }
})
