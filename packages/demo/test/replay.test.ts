import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ReplaySummary } from '../src/report/replay-summary.ts'
import { quietRun, runDemo } from './support/run.ts'

const TIMEOUT = { timeout: 300_000 }
const START = Date.UTC(2025, 4, 17, 10, 0, 0)

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-replay-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function line(client: string, second: number, request = 'GET /a HTTP/1.1'): string {
  const time = new Date(START + second * 1000).toISOString()
  return `${client} - - [17/May/2025:${time.slice(11, 19)} +0000] "${request}" 200 1 "-" "agent"`
}

/** Four minutes: a calm client, one at exactly its limit, one that exceeds it in one minute, and noise. */
function access(): string {
  const lines: [second: number, line: string][] = []
  for (let second = 0; second < 240; second += 4) lines.push([second, line('192.0.2.1', second)])
  for (let second = 0; second < 240; second += 2) lines.push([second, line('192.0.2.2', second)])
  for (let i = 0; i < 90; i++)
    lines.push([70 + Math.floor(i / 3), line('2001:db8::7', 70 + Math.floor(i / 3), i % 2 ? 'POST /b%zz?x HTTP/1.1' : '\\x16\\x03\\x01')])
  lines.push([100, `${line('192.0.2.3', 100).slice(0, -8)}\n "agent"`], [101, 'not a record'], [1800, line('192.0.2.4', 1800)])
  return `${lines
    .sort((a, b) => a[0] - b[0])
    .map(([, text]) => text)
    .join('\n')}\n`
}

describe('a replayed log', () => {
  it('refuses the clients that an exact limiter refuses', TIMEOUT, async () => {
    const file = join(folder, 'access.log.gz')
    writeFileSync(file, gzipSync(access()))
    const { summary, code, quiet } = await quietRun<ReplaySummary>([
      '--log',
      file,
      '--window',
      '4m',
      '--speed',
      '60',
      '--limit',
      '30',
      '--json',
    ])
    expect(summary.log).toMatchObject({
      from: '2025-05-17T10:00:00.000Z',
      to: '2025-05-17T10:04:00.000Z',
      requests: 271,
      clients: 4,
      skipped: 1,
      broken: 1,
      withoutRequest: 45,
    })
    expect(summary.errors).toEqual({ count: 0, first: null })
    expect(summary.exactByLog).toEqual({ clientsRefused: 1, requestsRefused: 60 })
    expect(code).toBe(0)
    if (!quiet) return
    expect(summary.strayed).toBe(0)
    expect(summary.comparison).toMatchObject({ sameClients: true, clientsRefused: 1, exactClientsRefused: 1, exactRequestsRefused: 60 })
    expect(summary.comparison.clients[0]).toMatchObject({ client: '2001:db8::7', requests: 90 })
    // No more than a tenth of the limit gets past it.
    expect(summary.comparison.requestsRefused).toBeGreaterThanOrEqual(57)
  })

  it('is summed up in plain words', TIMEOUT, async () => {
    const file = join(folder, 'access.log')
    writeFileSync(file, access())
    const { code, stdout } = await runDemo(['--log', file, '--window', '2m', '--speed', '120', '--limit', '30', '--store', 'ipc'])
    expect(code).toBe(0)
    expect(stdout).toContain('store: ipcStore')
    expect(stdout).toMatch(/2001:db8::7 .* 90 .* \d+ .* \d+/)
    expect(stdout).toContain('1 dirty line skipped')
    expect(stdout).toContain('by an exact limiter: ')
  })

  it('without any record is a mistake told in one line', TIMEOUT, async () => {
    const file = join(folder, 'empty.log')
    writeFileSync(file, 'hello\n\n')
    const { code, stdout, stderr } = await runDemo(['--log', file])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^weir demo: the log ".*" holds no record \(1 lines, none in Common or Combined Log Format\) \(see --help\)\n$/)
  })
})
