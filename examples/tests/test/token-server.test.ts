import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type PrivateRedis, startRedis } from '../src/redis.ts'
import { type Program, startProgram } from './program.ts'

const TIMEOUT = { timeout: 180_000 }
const SCRIPT = fileURLToPath(new URL('../../token-server/with-permit.sh', import.meta.url))
const LIMIT = 6

const redis: PrivateRedis | undefined = await startRedis()
const servers: Program[] = []
let away = false

beforeAll(async () => {
  if (redis === undefined) return
  // Both servers must count in the same hour.
  const left = 3_600_000 - (Date.now() % 3_600_000)
  if (left < 30_000) await new Promise((resolve) => setTimeout(resolve, left + 50))
  servers.push(...(await Promise.all([1, 2].map(() => startProgram('token-server', [], { REDIS_URL: redis.url })))))
  await both({ state: 'synced', nodes: 2 })
}, 90_000)
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop('SIGKILL')))
  if (!away) await redis?.stop()
})

/** Waits until both instances report this health. */
async function both(health: object): Promise<void> {
  const told = async ({ url }: Program) => (await fetch(`${url}/health`)).json()
  await vi.waitFor(async () => expect(await Promise.all(servers.map(told))).toMatchObject([health, health]), { timeout: 20_000 })
}

interface Permit {
  readonly status: number
  readonly again: string | null
  readonly told: {
    readonly granted: boolean
    readonly remaining: number
    readonly retryAfterMs: number | null
    readonly storeDown: boolean
  }
}

async function ask(server: number, body: unknown): Promise<Permit> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(`${servers[server]?.url}/permits`, { method: 'POST', body: text })
  return { status: response.status, again: response.headers.get('retry-after'), told: (await response.json()) as Permit['told'] }
}

/** Runs `echo done` with the shell script, which uses curl. */
function withPermit(key: string, addresses: readonly string[], policy = 'reports'): Promise<{ code: number; out: string }> {
  const env = { PATH: process.env['PATH'], TOKEN_SERVERS: addresses.join(' '), MAX_WAIT: '5' }
  return new Promise((resolve) => {
    execFile('/bin/sh', [SCRIPT, policy, key, 'echo', 'done'], { env }, (error, out) => {
      resolve({ code: error === null ? 0 : Number(error.code), out })
    })
  })
}

describe.skipIf(redis === undefined)('the token server', () => {
  it('grants a shell script no more than the limit, whichever instance it asks', TIMEOUT, async () => {
    const urls = servers.map(({ url }) => url)
    for (let i = 0; i < LIMIT; i++)
      expect(await withPermit('ann', i % 2 === 0 ? urls : urls.toReversed())).toEqual({ code: 0, out: 'done\n' })
    expect(await withPermit('ann', urls)).toEqual({ code: 75, out: '' })
    expect(await withPermit('ann', urls.toReversed())).toEqual({ code: 75, out: '' })
    expect((await withPermit('bob', urls)).code).toBe(0)
  })

  it('has a script ask the next instance when one is gone, and tells what it may not ask', TIMEOUT, async () => {
    const nobody = 'http://127.0.0.1:9'
    expect((await withPermit('cat', [nobody, servers[0]?.url ?? ''])).code).toBe(0)
    expect((await withPermit('cat', [nobody])).code).toBe(69)
    expect((await withPermit('cat', [servers[0]?.url ?? ''], 'nothing')).code).toBe(64)
  })

  it('makes a script wait for a permit that comes in time', TIMEOUT, async () => {
    // The policy grants ten permits at once, then one every 200 ms.
    expect(await ask(0, { policy: 'geocoder', key: 'dan', permits: 10 })).toMatchObject({ status: 200, told: { granted: true } })
    expect(await withPermit('dan', [servers[1]?.url ?? ''], 'geocoder')).toEqual({ code: 0, out: 'done\n' })
  })

  it('says when to come back, and does not when a request never fits', TIMEOUT, async () => {
    expect((await ask(0, { policy: 'reports', key: 'eve', permits: LIMIT })).told).toMatchObject({
      granted: true,
      remaining: 0,
      storeDown: false,
    })
    const rejected = await ask(1, { policy: 'reports', key: 'eve' })
    expect(rejected.status).toBe(429)
    expect(Number(rejected.again)).toBe(Math.ceil((rejected.told.retryAfterMs ?? 0) / 1000))
    expect(await ask(1, { policy: 'reports', key: 'fay', permits: LIMIT + 1 })).toMatchObject({
      status: 429,
      again: null,
      told: { retryAfterMs: null },
    })
  })

  it.each([
    ['no JSON', 'no JSON'],
    ['nothing', 'null'],
    ['no policy', { key: 'ann' }],
    ['an unknown policy', { policy: 'constructor', key: 'ann' }],
    ['no key', { policy: 'reports' }],
    ['a number below 0', { policy: 'reports', key: 'ann', permits: -1 }],
    ['a number in a string', { policy: 'reports', key: 'ann', permits: '1' }],
    ['a long body', { policy: 'reports', key: 'x'.repeat(5_000) }],
  ])('rejects %s as a bad request', TIMEOUT, async (_, body) => {
    expect((await ask(0, body)).status).toBe(400)
  })

  // The last test, because it stops Redis.
  it('grants at each instance its own share once Redis is away, and nothing of a key that was used up', TIMEOUT, async () => {
    await redis?.stop()
    away = true
    await both({ state: 'storeDown' })
    for (const server of [0, 1]) {
      const permits: Permit[] = []
      for (let i = 0; i < LIMIT; i++) permits.push(await ask(server, { policy: 'reports', key: 'gil' }))
      expect(permits.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429, 429])
      expect(permits.every(({ told }) => told.storeDown)).toBe(true)
    }
    expect((await ask(1, { policy: 'reports', key: 'eve' })).status).toBe(429)
  })
})
