import { findEtcdServer } from '@weir/tooling/etcd-server'
import { findPostgres } from '@weir/tooling/postgres-server'
import { describe, expect, it } from 'vitest'
import { type LiveInterval, type LiveSummary, mostAllowed } from '../src/report/live-summary.ts'
import { installedRedis } from '../src/store/redis-server.ts'
import { runDemo, summarized } from './support/run.ts'

const TIMEOUT = { timeout: 300_000 }
const redis = installedRedis()

/** Facts that every run must report, with any store. */
function expectSound(summary: LiveSummary): void {
  expect(summary.errors).toEqual({ count: 0, first: null })
  expect(summary.others.clients).toBe(8)
  expect(summary.nodes).toBe(3)
  expect(summary.gateways.map(({ name }) => name.split(' ')[0])).toEqual(['Express', 'Fastify', 'Koa'])
  const { allowed, rejected } = summary.abusive
  expect(summary.requests).toBe(allowed + rejected + summary.others.allowed + summary.others.rejected)
  for (const gateway of summary.gateways) {
    // Each gateway decides alone, so its own counts equal its clients' counts.
    expect(gateway.counted).toMatchObject({ allowed: gateway.allowed, rejected: gateway.rejected })
    expect(gateway.allowed).toBeGreaterThan(0)
    expect(gateway.rejected).toBeGreaterThan(0)
  }
  expect(summary.checks.filter(({ ok }) => ok === false)).toEqual([])
}

/** The most that the abusive client may get in an interval, with the delay of counts in it. */
function mostOf({ abusive: { allowed, rejected, limit }, latestMs }: LiveInterval, summary: LiveSummary): number {
  return mostAllowed(limit, allowed + rejected, latestMs, summary.limits.intervalMs)
}

describe('the demo', () => {
  it('runs without any server over ipcStore', TIMEOUT, async () => {
    const { summary, code, quiet } = await summarized<LiveSummary>(['--duration', '5', '--store', 'ipc'])
    expectSound(summary)
    expect(summary.store).toMatchObject({ kind: 'ipc', origin: 'parent' })
    expect(summary.intervals.filter(({ whole }) => whole)).toHaveLength(2)
    for (const interval of quiet ? summary.intervals : []) {
      const { whole, abusive } = interval
      expect(abusive.allowed).toBeLessThanOrEqual(mostOf(interval, summary))
      if (whole) expect(abusive.allowed).toBeGreaterThanOrEqual(abusive.limit * 0.9)
    }
    expect(code).toBe(0)
  })

  it.skipIf(redis === undefined)('runs over a private Redis and survives its death', TIMEOUT, async () => {
    const { summary, code, quiet } = await summarized<LiveSummary>(['--duration', '9', '--kill-redis', '--interval', '1s', '--limit', '60'])
    expectSound(summary)
    expect(summary.store).toMatchObject({ kind: 'redis', origin: 'private' })
    expect(summary.outage?.storeDownAfterMs).not.toContain(null)
    expect(summary.outage?.storeUpAfterMs).not.toContain(null)
    expect(summary.gateways.map(({ state }) => state)).not.toContain('storeDown')
    expect(summary.sync.storeCommands).toBeGreaterThan(0)
    // Without the store each gateway keeps to its share. Together they allow at most half above the limit.
    for (const interval of quiet ? summary.intervals : []) {
      const { outage, abusive } = interval
      expect(abusive.allowed).toBeLessThanOrEqual(
        outage ? Math.max(abusive.limit * 1.5, mostOf(interval, summary)) : mostOf(interval, summary),
      )
    }
    expect(code).toBe(0)
  })

  it.each([
    ['postgres', findPostgres()],
    ['etcd', findEtcdServer()],
  ])('runs over a private %s', TIMEOUT, async (kind, program) => {
    if (program === undefined) return
    const { stdout, code } = await runDemo(['--duration', '2', '--json', '--interval', '1s', '--store', kind])
    const summary = JSON.parse(stdout) as LiveSummary
    expectSound(summary)
    expect(summary.store).toMatchObject({ kind, origin: 'private' })
    expect(code).toBe(0)
  })

  it('prints plain lines where there is no terminal, and closes in plain words', TIMEOUT, async () => {
    const { stdout, stderr, code } = await runDemo([
      '--duration',
      '3',
      '--interval',
      '1s',
      '--limit',
      '40',
      '--store',
      'ipc',
      '--cooldown',
      '1500ms',
    ])
    expect(stderr).toBe('')
    expect(code).toBe(0)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours and cursor movements are what must not be there
    expect(stdout).not.toMatch(/\x1b/)
    expect(stdout).toContain('store: ipcStore')
    expect(stdout).toMatch(/interval \d+ of \d+, rejected \d+ \| mallory \d+ of 40\n.*gateways.*\n.*3 processes \| limited/)
    expect(stdout).toMatch(/Done: [\d,]+ requests in 3\.\d s/)
    expect(stdout).toMatch(/The 8 other clients sent \d+ requests; /)
  })

  it.each([
    [['--duration', 'soon'], "option '--duration <seconds>' argument 'soon' is invalid. It must be a number of seconds from 1 to 86400."],
    [['--log', 'nowhere.log'], 'cannot read the log "nowhere.log": there is no such file'],
    [['--nonsense'], "unknown option '--nonsense'"],
  ])('answers %j with one clear line', TIMEOUT, async (args, message) => {
    expect(await runDemo(args)).toEqual({ code: 2, stdout: '', stderr: `weir demo: ${message} (see --help)\n` })
  })

  it('explains itself', TIMEOUT, async () => {
    const { code, stdout } = await runDemo(['--help'])
    expect(code).toBe(0)
    expect(stdout).toContain('--kill-redis')
  })

  it('says in one line that there is no Redis at REDIS_URL, without its password', TIMEOUT, async () => {
    const { code, stdout, stderr } = await runDemo(['--duration', '2'], { REDIS_URL: 'redis://:secret@127.0.0.1:1' })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^weir demo: Redis at redis:\/\/\*\*\*@127\.0\.0\.1:1 is unreachable: .*\n$/)
  })
})
