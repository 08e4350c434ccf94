import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { run } from '@weir/cli'
import type { LimitedKey, MergedKeyUsage, Snapshot } from '@weir/core/inspect'
import { CHROMIUM, launch, MISSING } from '@weir/tooling/browser'
import { bundlePrograms } from '@weir/tooling/bundle'
import { RedisServer, until } from '@weir/tooling/redis-servers'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'

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
const processes: { readonly child: ChildProcess; readonly url: string }[] = []
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
  for (let i = 0; i < 2; i++) {
    const child = fork(join(folder, 'watched.mjs'), [redis.url], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const [port] = (await once(child, 'message')) as [number]
    processes.push({ child, url: `http://127.0.0.1:${port}` })
  }
  if (CHROMIUM !== undefined) browser = await launch()
  await until(async () => (await snapshots()).every(({ nodes, state }) => nodes === 2 && state === 'synced'), 'both are synced', 60_000)
}, 120_000)

afterAll(async () => {
  await browser?.close()
  for (const { child } of processes) child.kill()
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
})

function snapshots(): Promise<Snapshot[]> {
  return Promise.all(processes.map(async ({ url }) => (await (await fetch(`${url}/snapshot`)).json()) as Snapshot))
}

async function send(path: Path, client: string, requests: number): Promise<void> {
  for (let i = 0; i < requests; i++) {
    const { url } = processes[i % 2] as (typeof processes)[number]
    const { status } = await fetch(`${url}/${path}`, { headers: { 'x-client': client } })
    counted[path][status === 429 ? 'rejected' : 'allowed']++
  }
}

const total = (what: 'allowed' | 'rejected', paths: readonly Path[] = PATHS): number =>
  paths.reduce((sum, path) => sum + counted[path][what], 0)
const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0)
/** The enforced policy that rejects on a path. */
const policyOf = (path: Path): string => (path === 'both' ? 'short' : path)
/** Each policy's rejections, as clients counted them. */
const rejections = (): Record<string, number> => Object.fromEntries(PATHS.map((path) => [policyOf(path), counted[path].rejected]))

async function metrics(): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  for (const { url } of processes) {
    for (const line of (await (await fetch(`${url}/metrics`)).text()).split('\n')) {
      const [, name = '', value] = /^(weir_\w+\{[^}]*\}) (\S+)$/.exec(line) ?? []
      if (value !== undefined) found.set(name, (found.get(name) ?? 0) + Number(value))
    }
  }
  return found
}

/** The sum of the metrics with these labels. */
function metric(all: ReadonlyMap<string, number>, name: string, ...labels: readonly string[]): number {
  return sum([...all].flatMap(([full, value]) => (full.startsWith(`${name}{`) && labels.every((one) => full.includes(one)) ? [value] : [])))
}

async function top(): Promise<{
  limited: readonly LimitedKey[]
  hot: readonly MergedKeyUsage[]
  nodes: readonly { requests: { allowed: number; rejected: number } }[]
}> {
  let out = ''
  const stdout = Object.assign(new Writable({ write: (piece, _encoding, done) => done(void (out += String(piece))) }), {
    isTTY: false,
    columns: 120,
  })
  const surroundings = { stdin: Readable.from([]), stdout, stderr: stdout, env: {} }
  const code = await run(['top', '--store', redis.url, '--namespace', 'screens', '--most', '100', '--json'], surroundings as never, '1.0.0')
  expect(code, out).toBe(0)
  return JSON.parse(out)
}

/** The totals of "Limited now" on the page, by policy. */
async function shownTotals(): Promise<Record<string, number>> {
  const page = await (browser as Browser).newPage()
  try {
    await page.goto(`${processes[0]?.url}/weir/`)
    const section = page.locator('section[aria-labelledby="limited"]')
    const read = async () => {
      const all = section.getByRole('button', { name: /^Show all/ })
      if (await all.isVisible()) await all.click()
      const rows = await section.locator('tbody tr').evaluateAll((trs) =>
        trs.map((tr) => ({
          policy: tr.querySelector('.rule a')?.textContent ?? '',
          rejected: Number((tr.querySelector('[data-label="Total"]')?.textContent ?? '').replace(/\D/g, '')),
        })),
      )
      return byPolicy(rows)
    }
    await expect.poll(async () => sum(Object.values(await read())), { timeout: 20_000 }).toBe(total('rejected'))
    return await read()
  } finally {
    await page.close()
  }
}

/** The units in "Most used" on the page by policy: used ones, and those above the limit or owed by a bucket. */
async function shownUse(): Promise<Record<string, readonly [used: number, above: number]>> {
  const page = await (browser as Browser).newPage()
  try {
    await page.goto(`${processes[0]?.url}/weir/`)
    const read = async () => {
      const rows = await page
        .locator('section[aria-labelledby="top"] tbody tr')
        .evaluateAll((trs) =>
          trs.map((tr) => [tr.querySelector('.rule a')?.textContent ?? '', tr.querySelector('.part')?.textContent ?? ''] as const),
        )
      return Object.fromEntries(
        rows.map(([policy, text]) => {
          const [, used, above] = /^([\d,]+) of [\d,]+(?: (?:debt )?(\d+)(?: over limit)?)?$/.exec(text) ?? []
          return [policy, [Number(used), Number(above ?? 0)] as const]
        }),
      )
    }
    await expect.poll(async () => Object.keys(await read()).length, { timeout: 20_000 }).toBe(PATHS.length + 1)
    return await read()
  } finally {
    await page.close()
  }
}

/** Every screen shows what one client has used of each limit: what it got, and at most a full bucket and its debt. */
async function allUsesAgree(): Promise<void> {
  const got = Object.fromEntries(PATHS.map((path) => [policyOf(path), counted[path].allowed]))
  // Requests that another policy of their path rejects use nothing. A unit drains from a bucket in half an hour.
  const expected = { ...got, wide: counted.both.allowed }
  const limits: Record<string, number> = { wide: 1_000, short: 5, cool: 2 }
  const used = Object.entries(expected).map(([name, units]): [string, number] => [name, Math.min(units, limits[name] ?? 20)])
  const above = Object.entries(expected).map(([name, units]): [string, number] => [name, Math.max(0, units - (limits[name] ?? 20))])
  const { hot } = await top()
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

  const all = await metrics()
  expect(metric(all, 'weir_requests_total', 'result="allowed"')).toBe(total('allowed'))
  expect(metric(all, 'weir_requests_total', 'result="rejected"')).toBe(total('rejected'))
  for (const [policy, count] of enforced) {
    const labels = [`policy="${policy}"`, 'mode="enforced"']
    expect(metric(all, 'weir_rejected_requests_total', ...labels), policy).toBe(count)
  }
  expect(metric(all, 'weir_rejected_requests_total', 'mode="enforced"')).toBe(total('rejected'))

  let shown: Awaited<ReturnType<typeof top>> | undefined
  await until(
    async () => {
      shown = await top()
      return sum(shown.nodes.map(({ requests }) => requests.allowed)) === total('allowed')
    },
    'weir top has the newest reports',
    20_000,
  )
  expect(sum(shown?.nodes.map(({ requests }) => requests.rejected) ?? [])).toBe(total('rejected'))
  expect(Object.entries(byPolicy(shown?.limited ?? [])).sort()).toEqual(enforced.toSorted())

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
