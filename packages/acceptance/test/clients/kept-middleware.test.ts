import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CHROMIUM, launch, MISSING } from '@weir/tooling/browser'
import { bundlePrograms } from '@weir/tooling/bundle'
import { RedisServer, until } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { metric, metricsOf, type Row, shownRows, snapshotsOf, startWatched, sum, topOf, type Watched } from './support.ts'

/*
 * Two processes limit with the stores of express-rate-limit and @nestjs/throttler, whose limits have no policy before their first request.
 * Every screen must show the numbers that the client counted.
 */

/** The policy of each path. */
const POLICIES = { express: 'api', nest: 'default:10/36000s+36000s' } as const
const LIMITS = { express: 20, nest: 10 } as const
const PATHS = ['express', 'nest'] as const
/** Requests to each path, in turn at both processes. */
const REQUESTS = 40

let redis: RedisServer
let folder: string
let processes: readonly Watched[] = []

beforeAll(async () => {
  redis = await RedisServer.start()
  folder = await bundlePrograms(fileURLToPath(new URL('../..', import.meta.url)), ['test/clients/programs/kept.ts'], ['express', 'ioredis'])
  processes = await Promise.all([0, 1].map(() => startWatched(join(folder, 'kept.mjs'), redis.url)))
  const synced = async () => (await snapshotsOf(processes)).every(({ nodes, state }) => nodes === 2 && state === 'synced')
  await until(synced, 'both are synced', 60_000)
}, 120_000)

afterAll(async () => {
  for (const { child } of processes) child.kill()
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function read(path: string): Promise<string> {
  const { status, text } = await fetch(`${processes[0]?.url}${path}`).then(async (reply) => ({
    status: reply.status,
    text: await reply.text(),
  }))
  expect(status, text).toBe(200)
  return text
}

const isSame = (rows: readonly Row[], expected: readonly Row[]): boolean =>
  JSON.stringify(rows.toSorted((a, b) => a.policy.localeCompare(b.policy))) === JSON.stringify(expected)

test('all screens show the keys of stores of other limiters, and are empty before their first request', async ({ skip }) => {
  expect((await snapshotsOf(processes)).map(({ policies, limited, top }) => [policies, limited, top])).toEqual(
    [0, 1].map(() => [[], [], []]),
  )
  expect(await read('/line')).toBe('weir: no key was limited in the last minute')
  expect([await read('/explain'), await read('/usage')]).toEqual(['[]', '[]'])
  expect(metric(await metricsOf(processes), 'weir_requests_total')).toBe(0)
  expect(await topOf(redis.url, 'kept')).toMatchObject({ limited: [], hot: [] })
  const browser = CHROMIUM === undefined ? undefined : await launch()
  try {
    if (browser !== undefined) await shownRows(browser, processes[0]?.url as string, 'top', (rows) => rows.length === 0)

    const counted = { express: { allowed: 0, rejected: 0 }, nest: { allowed: 0, rejected: 0 } }
    for (const path of PATHS) {
      for (let i = 0; i < REQUESTS; i++) {
        const { status } = await fetch(`${processes[i % 2]?.url}/${path}`, { headers: { 'x-client': 'mallory' } })
        counted[path][status === 429 ? 'rejected' : 'allowed']++
      }
    }
    const ofEach = (what: 'allowed' | 'rejected') => PATHS.map((path) => [POLICIES[path], counted[path][what]] as const)
    for (const path of PATHS) {
      expect(counted[path].allowed).toBeGreaterThanOrEqual(LIMITS[path])
      expect(counted[path].rejected).toBeGreaterThan(0)
    }
    const [allowed, rejected] = (['allowed', 'rejected'] as const).map((what) => sum(ofEach(what).map(([, count]) => count)))

    const snapshots = await snapshotsOf(processes)
    expect(sum(snapshots.map(({ requests }) => requests.allowed))).toBe(allowed)
    expect(sum(snapshots.map(({ requests }) => requests.rejected))).toBe(rejected)
    const metrics = await metricsOf(processes)
    expect(metric(metrics, 'weir_requests_total', 'result="allowed"')).toBe(allowed)
    for (const [policy, count] of ofEach('rejected'))
      expect(metric(metrics, 'weir_rejected_requests_total', `policy="${policy}"`), policy).toBe(count)
    const explained: { policy: string; next: string }[] = JSON.parse(await read('/explain'))
    expect(explained.map(({ policy, next }) => [policy, next]).sort()).toEqual(PATHS.map((path) => [POLICIES[path], 'reject']).toSorted())
    const usage: { policy: string; used: number }[] = JSON.parse(await read('/usage'))
    expect(usage.map(({ policy, used }) => [policy, used]).sort()).toEqual(ofEach('allowed').toSorted())
    expect(await read('/line')).toContain('"mallory" by ')

    let top = await topOf(redis.url, 'kept')
    await until(
      async () => {
        top = await topOf(redis.url, 'kept')
        return sum(top.limited.map((one) => one.rejected)) === rejected && sum(top.hot.map(({ used }) => used)) === allowed
      },
      'weir top has the newest reports',
      20_000,
    )
    expect(top.limited.map(({ policy, key, rejected: count }) => [policy, key, count]).sort()).toEqual(
      ofEach('rejected')
        .map(([policy, count]) => [policy, 'mallory', count])
        .toSorted(),
    )
    expect(top.hot.map(({ policy, key, used, limit }) => [policy, key, used, limit]).sort()).toEqual(
      PATHS.map((path) => [POLICIES[path], 'mallory', counted[path].allowed, LIMITS[path]]).toSorted(),
    )

    if (browser === undefined) skip(MISSING)
    else {
      const url = processes[1]?.url as string
      const rejections = ofEach('rejected').map(([policy, count]) => ({ policy, key: 'mallory', text: String(count) }))
      await shownRows(browser, url, 'limited', (rows) => isSame(rows, rejections))
      const uses = PATHS.map((path) => {
        const over = counted[path].allowed - LIMITS[path]
        return {
          policy: POLICIES[path],
          key: 'mallory',
          text: `${LIMITS[path]} of ${LIMITS[path]}${over > 0 ? ` ${over} over limit` : ''}`,
        }
      })
      await shownRows(browser, url, 'top', (rows) => isSame(rows, uses))
    }
  } finally {
    await browser?.close()
  }
})
