import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Program, runProgram, startProgram } from '../src/program.ts'
import { type PrivateRedis, startRedis } from '../src/redis.ts'

const TIMEOUT = { timeout: 60_000 }
let folder: string
let upstream: Server
const programs: Program[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-gateway-'))
  upstream = createServer((request, response) => {
    const delay = request.url?.startsWith('/slow') ? 1000 : 0
    response.setHeader('content-type', 'application/json')
    setTimeout(
      () => response.end(JSON.stringify({ method: request.method, url: request.url, from: request.headers['x-forwarded-for'] })),
      delay,
    )
  })
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
})
afterEach(() => Promise.all(programs.splice(0).map((program) => program.stop('SIGKILL'))))
afterAll(() => {
  upstream.close()
  rmSync(folder, { recursive: true })
})

/** A long interval, so that no test crosses a boundary by chance more than once in an hour. */
function configure(name: string, more = ''): string {
  const file = join(folder, name)
  const { port } = upstream.address() as AddressInfo
  writeFileSync(
    file,
    `listen: { port: 0 }
routes:
  - { prefix: /api, upstream: "http://127.0.0.1:${port}", rewrite: /v1 }
  - { prefix: /, upstream: "http://127.0.0.1:${port}" }
limits:
  - { name: everyone, key: all, limit: 1000, interval: 1h }
  - { name: user, key: { header: x-api-key }, limit: 6, interval: 1h }
  - { name: search, key: { header: x-api-key }, match: GET /search, limit: 4, interval: 1h, cost: 2 }
${more}`,
  )
  return file
}

async function start(file: string): Promise<Program> {
  const program = await startProgram('gateway', [file])
  programs.push(program)
  return program
}

const get = (program: Program, path: string, key: string): Promise<Response> =>
  fetch(`${program.url}${path}`, { headers: { 'x-api-key': key } })

describe('the gateway', () => {
  it('hands requests on by the longest prefix, and says who asked', TIMEOUT, async () => {
    const gateway = await start(configure('routes.yaml'))
    expect(await (await get(gateway, '/api/users?x=1', 'a')).json()).toEqual({ method: 'GET', url: '/v1/users?x=1', from: '127.0.0.1' })
    expect(await (await get(gateway, '/other', 'a')).json()).toMatchObject({ url: '/other' })
    const posted = await fetch(`${gateway.url}/orders`, {
      method: 'POST',
      body: '{"a":1}',
      headers: { 'content-type': 'application/json', 'x-api-key': 'b' },
    })
    expect(await posted.json()).toMatchObject({ method: 'POST', url: '/orders' })
  })

  it('refuses by the limit that is used up; such a request costs nothing at the others', TIMEOUT, async () => {
    const gateway = await start(configure('levels.yaml'))
    for (let i = 0; i < 2; i++) expect((await get(gateway, '/search', 'a')).status).toBe(200)
    for (let i = 0; i < 3; i++) {
      const refused = await get(gateway, '/search', 'a')
      expect(refused.status).toBe(429)
      expect(await refused.json()).toMatchObject({ 'violated-policies': ['search'] })
    }
    // Two of the user's six are taken: four are left.
    for (let i = 0; i < 4; i++) expect((await get(gateway, '/', 'a')).status).toBe(200)
    expect(await (await get(gateway, '/', 'a')).json()).toMatchObject({ 'violated-policies': ['user'] })
    expect((await get(gateway, '/', 'b')).status).toBe(200)
  })

  it('tells its health, uncounted', TIMEOUT, async () => {
    const gateway = await start(configure('health.yaml'))
    for (let i = 0; i < 20; i++) {
      const response = await get(gateway, '/-/health', 'a')
      expect(response.status).toBe(200)
      expect(await response.json()).toMatchObject({ status: 'ok', gateways: 1 })
    }
    expect((await get(gateway, '/', 'a')).status).toBe(200)
  })

  it('says that it ends, answers what is under way, and ends', TIMEOUT, async () => {
    const gateway = await start(configure('shutdown.yaml', 'drainSeconds: 0.5\n'))
    await get(gateway, '/', 'a')
    const slow = get(gateway, '/slow', 'a')
    await new Promise((resolve) => setTimeout(resolve, 200))
    const ended = gateway.stop('SIGTERM')
    await expect.poll(async () => (await fetch(`${gateway.url}/-/health`)).status, { timeout: 400, interval: 20 }).toBe(503)
    expect((await slow).status).toBe(200)
    expect(await ended).toBe(0)
  })

  it('does not start with a wrong configuration, and names the line', TIMEOUT, async () => {
    const file = configure('wrong.yaml', 'shutdownSeconds: never\n')
    expect(await runProgram('gateway', [file])).toEqual({
      code: 2,
      output: `${file}:9: "shutdownSeconds": it must be a number of seconds\n`,
    })
  })
})

describe('two gateways behind one Redis', () => {
  let redis: PrivateRedis | undefined
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis?.stop())

  it('share the limits', TIMEOUT, async (context) => {
    if (redis === undefined) return context.skip('redis-server is not installed')
    const file = configure('shared.yaml', `store: ${redis.url}\n`)
    const both = [await start(file), await start(file)] as const
    for (const gateway of both) {
      await expect
        .poll(async () => (await fetch(`${gateway.url}/-/health`)).json(), { timeout: 10_000 })
        .toMatchObject({ throttle: 'synced', gateways: 2 })
    }
    for (let i = 0; i < 6; i++) expect((await get(both[0], '/', 'shared')).status).toBe(200)
    await expect.poll(async () => (await get(both[1], '/', 'shared')).status, { timeout: 5_000 }).toBe(429)
  })
})
