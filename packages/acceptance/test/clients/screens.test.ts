import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LimitedKey, Snapshot } from '@weir/core/inspect'
import { CHROMIUM, launch, MISSING } from '@weir/tooling/browser'
import { bundlePrograms } from '@weir/tooling/bundle'
import { RedisServer, until } from '@weir/tooling/redis-servers'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { metric, metricsOf, type Row, shownRows, snapshotsOf, startWatched, sum, type Top, topOf, type Watched } from './support.ts'

/*
 * Two processes get known traffic. Every screen must show the numbers that the clients counted: the dashboard in Chromium, `weir top`, the
 * metrics, and the snapshot.
 */

const PATHS = ['fixed', 'sliding', 'counter', 'log', 'token', 'leaky', 'both', 'cool'] as const
type Path = (typeof PATHS)[number]
/** Requests of one client to each path, in turn at both processes. */
const REQUESTS = 50
/** Milliseconds of the outage. It is longer than a status counts as current. */
const OUTAGE = 22_000

let redis: RedisServer
let folder: string
let browser: Browser | undefined
const processes: Watched[] = []
/** Responses that clients got, by path. */
const counted = Object.fromEntries(PATHS.map((path) => [path, { allowed: 0, rejected: 0 }])) as Record<
  Path,
  { allowed: number; rejected: number }
>

beforeAll(async () => {
  redis = await RedisServer.start()
  folder = await bundlePrograms(
    fileURLToPath(new URL('../..', import.meta.url)),
    ['test/clients/programs/watched.ts'],
    ['express', 'ioredis'],
  )
  for (let i = 0; i < 2; i++) processes.push(await startWatched(join(folder, 'watched.mjs'), redis.url))
  if (CHROMIUM !== undefined) browser = await launch()
  await until(async () => (await snapshots()).every(({ nodes, state }) => nodes === 2 && state === 'synced'), 'both are synced', 60_000)
}, 120_000)

afterAll(async () => {
  await browser?.close()
  for (const { child } of processes) child.kill()
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
})

const snapshots = (): Promise<Snapshot[]> => snapshotsOf(processes)

async function send(path: Path, client: string, requests: number): Promise<void> {
  for (let i = 0; i < requests; i++) {
    const { url } = processes[i % 2] as (typeof processes)[number]
    const { status } = await fetch(`${url}/${path}`, { headers: { 'x-client': client } })
    counted[path][status === 429 ? 'rejected' : 'allowed']++
  }
}

const total = (what: 'allowed' | 'rejected', paths: readonly Path[] = PATHS): number =>
  paths.reduce((sum, path) => sum + counted[path][what], 0)
/** The enforced policy that rejects on a path. */
const policyOf = (path: Path): string => (path === 'both' ? 'short' : path)
/** Each policy's rejections, as clients counted them. */
const rejections = (): Record<string, number> => Object.fromEntries(PATHS.map((path) => [policyOf(path), counted[path].rejected]))

/** The totals of "Limited now" on the page, by policy. */
async function shownTotals(): Promise<Record<string, number>> {
  const totals = (rows: readonly Row[]) => byPolicy(rows.map(({ policy, text }) => ({ policy, rejected: Number(text.replace(/\D/g, '')) })))
  return totals(await shown('limited', (rows) => sum(Object.values(totals(rows))) === total('rejected')))
}

const shown = (list: 'limited' | 'top', isComplete: (rows: readonly Row[]) => boolean): Promise<readonly Row[]> =>
  shownRows(browser as Browser, processes[0]?.url as string, list, isComplete)

/** The units in "Most used" on the page by policy: used ones, and those above the limit or owed by a bucket. */
async function shownUse(): Promise<Record<string, readonly [used: number, above: number]>> {
  const rows = await shown('top', ({ length }) => length === PATHS.length + 1)
  return Object.fromEntries(
    rows.map(({ policy, text }) => {
      const [, used, above] = /^([\d,]+) of [\d,]+(?: (?:debt )?(\d+)(?: over limit)?)?$/.exec(text) ?? []
      return [policy, [Number(used), Number(above ?? 0)] as const]
    }),
  )
}

/** Every screen shows what one client has used of each limit: what it got, and at most a full bucket and its debt. */
async function allUsesAgree(): Promise<void> {
  const got = Object.fromEntries(PATHS.map((path) => [policyOf(path), counted[path].allowed]))
  // Requests that another policy of their path rejects use nothing. A unit drains from a bucket in half an hour.
  const expected = { ...got, wide: counted.both.allowed }
  const limits: Record<string, number> = { wide: 1_000, short: 5, cool: 2 }
  const used = Object.entries(expected).map(([name, units]): [string, number] => [name, Math.min(units, limits[name] ?? 20)])
  const above = Object.entries(expected).map(([name, units]): [string, number] => [name, Math.max(0, units - (limits[name] ?? 20))])
  const { hot } = await topOf(redis.url, 'screens')
  const atTop = hot.map(({ policy, used: units, limit = 0, debt }) => {
    const level = Math.min(units, limit)
    return [policy, [Math.round(level), units + debt - level]] as const
  })
  for (const shown of [Object.fromEntries(atTop), ...(browser === undefined ? [] : [await shownUse()])]) {
    expect(Object.fromEntries(Object.entries(shown).map(([name, [level]]) => [name, level]))).toEqual(Object.fromEntries(used))
    // A part of a unit has drained.
    for (const [name, units] of above) expect(Math.abs((shown[name]?.[1] ?? 0) - units), name).toBeLessThanOrEqual(1)
  }
}

/** Rejections of all keys and processes, by policy. */
function byPolicy(all: readonly Pick<LimitedKey, 'policy' | 'rejected'>[]): Record<string, number> {
  const found: Record<string, number> = {}
  for (const { policy, rejected } of all) found[policy] = (found[policy] ?? 0) + rejected
  return found
}

async function allScreensAgree(): Promise<void> {
  // Decisions of the last requests are counted at once, and reports to other processes take a heartbeat.
  const taken = await snapshots()
  expect(sum(taken.map(({ requests }) => requests.allowed))).toBe(total('allowed'))
  expect(sum(taken.map(({ requests }) => requests.rejected))).toBe(total('rejected'))
  const enforced = Object.entries(rejections()).filter(([, count]) => count > 0)
  const inSnapshots = byPolicy(taken.flatMap((one) => one.limited))
  expect(
    Object.entries(inSnapshots)
      .filter(([name]) => !/^(dry|next:)/.test(name))
      .sort(),
  ).toEqual(enforced.toSorted())
  // The dry run and the candidate judge each request to their path, and reject none.
  expect(inSnapshots['dry']).toBeGreaterThanOrEqual(REQUESTS - 2 * 3)
  expect(inSnapshots['next:short']).toBeGreaterThanOrEqual(REQUESTS - 2 * 2)

  const all = await metricsOf(processes)
  expect(metric(all, 'weir_requests_total', 'result="allowed"')).toBe(total('allowed'))
  expect(metric(all, 'weir_requests_total', 'result="rejected"')).toBe(total('rejected'))
  for (const [policy, count] of enforced) {
    const labels = [`policy="${policy}"`, 'mode="enforced"']
    expect(metric(all, 'weir_rejected_requests_total', ...labels), policy).toBe(count)
  }
  expect(metric(all, 'weir_rejected_requests_total', 'mode="enforced"')).toBe(total('rejected'))

  let newest: Top | undefined
  await until(
    async () => {
      newest = await topOf(redis.url, 'screens')
      return sum(newest.nodes.map(({ requests }) => requests.allowed)) === total('allowed')
    },
    'weir top has the newest reports',
    20_000,
  )
  expect(sum(newest?.nodes.map(({ requests }) => requests.rejected) ?? [])).toBe(total('rejected'))
  expect(Object.entries(byPolicy(newest?.limited ?? [])).sort()).toEqual(enforced.toSorted())

  if (browser === undefined) return
  expect(Object.entries(await shownTotals()).toSorted()).toEqual(enforced.toSorted())
}

test('all screens show the numbers that clients counted, also after an outage', { timeout: 180_000 }, async ({ skip }) => {
  await Promise.all(PATHS.map((path) => send(path, 'mallory', REQUESTS)))
  expect(counted.both.allowed).toBe(5)
  expect(counted.cool.allowed).toBe(2)
  for (const path of ['fixed', 'sliding', 'counter', 'log', 'token', 'leaky'] as const) {
    expect(counted[path].allowed, path).toBeGreaterThanOrEqual(20)
    expect(counted[path].rejected, path).toBeGreaterThan(0)
  }
  await allScreensAgree()
  await allUsesAgree()
  const before = await snapshots()
  const own = (one: Snapshot, policy: string) => one.policies.find(({ name }) => name === policy)
  // Clients got at most this much more than the limit.
  const overshoot = counted.fixed.allowed / 20 - 1
  expect(Math.max(...before.map((one) => own(one, 'fixed')?.measuredOvershoot ?? Number.NaN))).toBeCloseTo(Math.max(0, overshoot))

  redis.pause()
  await until(async () => (await snapshots()).every(({ state }) => state === 'storeDown'), 'both notice the outage', 20_000)
  await Promise.all([
    new Promise((resolve) => setTimeout(resolve, OUTAGE)),
    ...(['fixed', 'sliding', 'token'] as const).map((path) => send(path, 'alice', 30)),
  ])
  redis.resume()
  await until(async () => (await snapshots()).every(({ state }) => state === 'synced'), 'both are synced again', 30_000)
  await allScreensAgree()
  if (browser === undefined) skip(MISSING)
})
