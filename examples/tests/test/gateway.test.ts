import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EtcdServer, NO_ETCD } from '@weir/tooling/etcd-servers'
import { findPostgres, PostgresServer } from '@weir/tooling/postgres-servers'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startRedis } from '../src/redis.ts'
import { type Program, runProgram, startProgram } from './program.ts'

const TIMEOUT = { timeout: 180_000 }
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

/** Writes a configuration. Its intervals are long, so that they end during a test at most once an hour. */
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

async function start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Program> {
  const program = await startProgram('gateway', args, env)
  programs.push(program)
  return program
}

/** Sends a request on a new connection, so that the processes of a gateway take turns. */
const get = (program: Program, path: string, key: string): Promise<Response> =>
  fetch(`${program.url}${path}`, { headers: { 'x-api-key': key, connection: 'close' } })

const isSynced = async (program: Program, gateways: number): Promise<boolean> => {
  const health = (await (await get(program, '/-/health', 'a')).json()) as { throttle: string; gateways: number }
  return health.throttle === 'synced' && health.gateways === gateways
}

async function meet(program: Program, gateways: number): Promise<void> {
  await expect.poll(() => isSynced(program, gateways), { timeout: 10_000 }).toBe(true)
}

/** Uses up the limit of 6. On a busy machine the store may answer late, and until then each process allows only its share. */
async function useUp(program: Program): Promise<void> {
  for (let i = 0; i < 6; i++) await expect.poll(async () => (await get(program, '/', 'shared')).status, { timeout: 10_000 }).toBe(200)
}

/** The number of requests that are allowed until `times` in a row are rejected while all gateways are synced. */
async function allowedUntilRejected(program: Program, gateways: number, times: number): Promise<number> {
  let allowed = 0
  let rejected = 0
  await expect
    .poll(
      async () => {
        const before = await isSynced(program, gateways)
        const { status } = await get(program, '/', 'shared')
        if (status === 200) allowed++
        rejected = status === 429 && before && (await isSynced(program, gateways)) ? rejected + 1 : 0
        return rejected
      },
      { timeout: 20_000, interval: 200 },
    )
    .toBe(times)
  return allowed
}

describe('the gateway', () => {
  it('hands requests on by the longest prefix, and says who asked', TIMEOUT, async () => {
    const gateway = await start([configure('routes.yaml')])
    expect(await (await get(gateway, '/api/users?x=1', 'a')).json()).toEqual({ method: 'GET', url: '/v1/users?x=1', from: '127.0.0.1' })
    expect(await (await get(gateway, '/other', 'a')).json()).toMatchObject({ url: '/other' })
    const posted = await fetch(`${gateway.url}/orders`, {
      method: 'POST',
      body: '{"a":1}',
      headers: { 'content-type': 'application/json', 'x-api-key': 'b' },
    })
    expect(await posted.json()).toMatchObject({ method: 'POST', url: '/orders' })
  })

  it('rejects by the limit that is used up; such a request costs nothing at the others', TIMEOUT, async () => {
    const gateway = await start([configure('levels.yaml')])
    for (let i = 0; i < 2; i++) expect((await get(gateway, '/search', 'a')).status).toBe(200)
    for (let i = 0; i < 3; i++) {
      const rejected = await get(gateway, '/search', 'a')
      expect(rejected.status).toBe(429)
      expect(await rejected.json()).toMatchObject({ 'violated-policies': ['search'] })
    }
    // The searches used two of the user's six requests, so four remain.
    for (let i = 0; i < 4; i++) expect((await get(gateway, '/', 'a')).status).toBe(200)
    expect(await (await get(gateway, '/', 'a')).json()).toMatchObject({ 'violated-policies': ['user'] })
    expect((await get(gateway, '/', 'b')).status).toBe(200)
  })

  it('tells its health, uncounted', TIMEOUT, async () => {
    const gateway = await start([configure('health.yaml')])
    for (let i = 0; i < 20; i++) {
      const response = await get(gateway, '/-/health', 'a')
      expect(response.status).toBe(200)
      expect(await response.json()).toMatchObject({ status: 'ok', gateways: 1 })
    }
    expect((await get(gateway, '/', 'a')).status).toBe(200)
  })

  it('says that it ends, answers what is under way, and ends', TIMEOUT, async () => {
    const gateway = await start([configure('shutdown.yaml', 'drainSeconds: 3\n')])
    await get(gateway, '/', 'a')
    const slow = get(gateway, '/slow', 'a')
    await new Promise((resolve) => setTimeout(resolve, 200))
    const ended = gateway.stop('SIGTERM')
    await expect.poll(async () => (await fetch(`${gateway.url}/-/health`)).status, { timeout: 2_500, interval: 20 }).toBe(503)
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

interface Meeting {
  readonly url: string
  stop(): Promise<void>
}

describe('two gateways', () => {
  it.for<[string, string, () => Promise<Meeting | undefined>]>([
    ['redis', 'REDIS_URL', startRedis],
    ['postgres', 'POSTGRES_URL', async () => (findPostgres() === undefined ? undefined : PostgresServer.start())],
    ['etcd', 'ETCD_URL', async () => (NO_ETCD === undefined ? EtcdServer.start() : undefined)],
  ])('behind one %s share the limits', TIMEOUT, async ([kind, variable, startServer], context) => {
    const server = await startServer()
    if (server === undefined) return context.skip(`there is no ${kind} on this machine`)
    try {
      const file = configure(`${kind}.yaml`)
      const args = [file, '--store', kind]
      const both = await Promise.all([start(args, { [variable]: server.url }), start(args, { [variable]: server.url })])
      for (const gateway of both) await meet(gateway, 2)
      await useUp(both[0])
      // Without the store, the second gateway would also allow six.
      expect(await allowedUntilRejected(both[1], 2, 1)).toBeLessThan(6)
    } finally {
      await Promise.all(programs.splice(0).map((program) => program.stop('SIGKILL')))
      await server.stop()
    }
  })
})

describe('a gateway of two processes', () => {
  it('shares the limits without a server, and ends as a whole', TIMEOUT, async () => {
    const gateway = await start([configure('processes.yaml', 'processes: 2\n'), '--store', 'ipc'])
    expect(gateway.output()).toContain('in 2 processes')
    await meet(gateway, 2)
    await useUp(gateway)
    // Without a common limit each process would allow six.
    expect(await allowedUntilRejected(gateway, 2, 4)).toBeLessThan(6)
    expect(await gateway.stop('SIGTERM')).toBe(0)
  })

  it('does not start with a store that is none', TIMEOUT, async () => {
    expect(await runProgram('gateway', ['--store', 'mysql'])).toMatchObject({ code: 2, output: expect.stringContaining('Usage: gateway') })
  })
})
