import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createGuard } from '../../../src/http/guard.ts'
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
  expect(reported.every(({ code }) => code === 'WEIR_TRUST_PROXY')).toBe(true)
  return reported.map(({ message }) => message)
}

const proxy = { remoteAddress: '10.0.0.1', destroyed: false }
const direct: Proxied = { ip: '10.0.0.1', connection: proxy }

test.each(['x-forwarded-for', 'forwarded', 'x-real-ip'])('a "%s" that the framework ignores is reported once', (name) => {
  const proxied = { ...direct, headers: { [name]: '192.0.2.1' } }
  // Health checks of the proxy, without the header, come first.
  const found = warningsOf([...Array.from({ length: 100 }, () => direct), proxied, proxied])
  expect(found).toHaveLength(1)
  expect(found[0]).toContain(`A request from 10.0.0.1 has the header "${name}"`)
})

test('a header that the framework follows is not reported', () => {
  expect(warningsOf([{ ip: '192.0.2.1', connection: proxy, headers: { 'x-forwarded-for': '192.0.2.1' } }])).toEqual([])
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

test('an address that is none is reported once, and so is a connection without one', () => {
  expect(warningsOf([{ ip: 'garbage' }, { ip: 'more garbage' }])).toEqual([expect.stringContaining('"garbage"')])
  const socket = { connection: { destroyed: false } }
  expect(warningsOf([socket, socket])).toEqual([expect.stringContaining('All such clients share the key "unknown"')])
})

test('a client that has gone is no reason for a warning', () => {
  expect(warningsOf([{ connection: { destroyed: true } }])).toEqual([])
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
