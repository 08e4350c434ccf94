import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClientComparison } from '../src/log/compare.ts'
import type { ReplaySummary } from '../src/report/replay-summary.ts'
import { runDemo, summarized } from './support/run.ts'

const TIMEOUT = { timeout: 300_000 }
const START = Date.UTC(2025, 4, 17, 10, 0, 0)
const LIMIT = 30
/** Requests of the client that exceeds the limit. Each gateway alone gets more of them than the limit, independently of the others. */
const LOUD = 150
const GATEWAYS = 3

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-replay-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function line(client: string, second: number, request = 'GET /a HTTP/1.1'): string {
  const time = new Date(START + second * 1000).toISOString()
  return `${client} - - [17/May/2025:${time.slice(11, 19)} +0000] "${request}" 200 1 "-" "agent"`
}

/**
 * Four minutes: a calm client, a client at exactly its limit, a client that exceeds it in one minute, and noise. At 60 times the pace a
 * minute takes a second. All requests that a limit decides are in the middle half of their minute. So a request that is late by less than
 * a quarter of a second, or a clock that is off by that, does not change its minute.
 */
function access(): string {
  const lines: [second: number, line: string][] = []
  for (let second = 0; second < 240; second += 4) lines.push([second, line('192.0.2.1', second)])
  for (let minute = 0; minute < 240; minute += 60)
    for (let second = minute + 15; second < minute + 45; second++) lines.push([second, line('192.0.2.2', second)])
  for (let i = 0; i < LOUD; i++) {
    const second = 75 + Math.floor(i / 5)
    lines.push([second, line('2001:db8::7', second, i % 2 ? 'POST /b%zz?x HTTP/1.1' : '\\x16\\x03\\x01')])
  }
  lines.push([100, `${line('192.0.2.3', 100).slice(0, -8)}\n "agent"`], [101, 'not a record'], [1800, line('192.0.2.4', 1800)])
  return `${lines
    .sort((a, b) => a[0] - b[0])
    .map(([, text]) => text)
    .join('\n')}\n`
}

describe('a replayed log', () => {
  it('rejects the clients that an exact limiter rejects', TIMEOUT, async () => {
    const file = join(folder, 'access.log.gz')
    writeFileSync(file, gzipSync(access()))
    const args = ['--log', file, '--window', '4m', '--speed', '60', '--limit', `${LIMIT}`]
    const { summary, code, quiet } = await summarized<ReplaySummary>(args)
    expect(code).toBe(0)
    expect(summary.log).toMatchObject({
      from: '2025-05-17T10:00:00.000Z',
      to: '2025-05-17T10:04:00.000Z',
      requests: 60 + 4 * LIMIT + LOUD + 1,
      clients: 4,
      skipped: 1,
      broken: 1,
      withoutRequest: LOUD / 2,
    })
    expect(summary.errors).toEqual({ count: 0, first: null })
    expect(summary.exactByLog).toEqual({ clientsRejected: 1, requestsRejected: LOUD - LIMIT })
    // Requests that were later arrived in another minute than in the log, so an exact limiter rejects others.
    if (!quiet) return
    expect(summary.strayed).toBe(0)
    const { clients, ...all } = summary.comparison
    expect(all).toMatchObject({ exactClientsRejected: 1, exactRequestsRejected: LOUD - LIMIT })
    const loud = clients.find(({ exactRejected }) => exactRejected > 0) as ClientComparison
    expect(loud).toMatchObject({ client: '2001:db8::7', requests: LOUD })
    // The overshoot depends on the delay of syncs between the gateways. Each of them alone keeps to the limit.
    expect(loud.rejected).toBeGreaterThanOrEqual(LOUD - GATEWAYS * LIMIT)
    expect(loud.rejected - loud.storeDown).toBeLessThanOrEqual(LOUD - LIMIT)
    // While an answer of the store is overdue, a gateway keeps to its share. This may reject a client at exactly its limit.
    for (const { client, rejected, storeDown } of clients)
      if (client !== loud.client) expect({ client, rejected }).toEqual({ client, rejected: storeDown })
    expect(all.sameClients).toBe(clients.length === 1)
  })

  it('is summed up in plain words', TIMEOUT, async () => {
    const file = join(folder, 'access.log')
    writeFileSync(file, access())
    const { code, stdout } = await runDemo(['--log', file, '--window', '2m', '--speed', '120', '--limit', '30', '--store', 'ipc'])
    expect(code).toBe(0)
    expect(stdout).toContain('store: ipcStore')
    expect(stdout).toMatch(/2001:db8::7 .* 150 .* \d+ .* \d+/)
    expect(stdout).toContain('1 unreadable line skipped')
    expect(stdout).toContain('by an exact limiter: ')
  })

  it('without any record is a mistake told in one line', TIMEOUT, async () => {
    const file = join(folder, 'empty.log')
    writeFileSync(file, 'hello\n\n')
    const { code, stdout, stderr } = await runDemo(['--log', file])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(
      /^weir demo: the log ".*" contains no record \(1 lines, none in Common or Combined Log Format\) \(see --help\)\n$/,
    )
  })
})
