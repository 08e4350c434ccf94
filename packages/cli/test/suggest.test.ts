import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { SuggestReport } from '../src/commands/suggest-report.ts'
import { Busiest } from '../src/replay/busiest.ts'
import { Frequent } from '../src/replay/frequent.ts'
import { file, line, weir } from './weir.ts'

/** 200 clients with one request each, and a flood from one more client in the second minute. */
const traffic = [
  ...Array.from({ length: 200 }, (_, i) => line(i % 60, `198.51.100.${i}`)),
  ...Array.from({ length: 50 }, (_, i) => line(60 + i, '192.0.2.66', `GET /a/${i < 40 ? 1 : 2}?x=${i} HTTP/1.1`, 'flood/1')),
].join('')
const log = file('suggest.log', traffic)

async function suggested(...args: string[]): Promise<SuggestReport> {
  const { out, err } = await weir(['suggest', ...args, '--json'])
  expect(err).toBe('')
  return JSON.parse(out)
}

describe('a suggestion', () => {
  it('contains the percentiles, the limits with their effects, and the clients above', async () => {
    const report = await suggested(log)
    expect(report).toMatchObject({ requests: 250, clients: 201, interval: 60_000 })
    expect(report.busiest).toEqual({ p50: 1, p90: 1, p95: 1, p99: 1, 'p99.5': 1, max: 50 })
    expect(report.leaves99).toEqual({ limit: 1, rejected: 49, rejectedClients: 1 })
    expect(report.leaves999).toEqual({ limit: 50, rejected: 0, rejectedClients: 0 })
    expect(report.others.map(({ limit }) => limit)).toEqual([3, 6, 10, 30])
    const [client] = report.above
    expect(report.above).toHaveLength(1)
    expect(client).toMatchObject({ client: '192.0.2.66', requests: 50, busiest: 50, agents: [{ text: 'flood/1', share: 1 }] })
    expect(client?.routes.map(({ text }) => text)).toEqual(['GET /a/1', 'GET /a/2'])
    expect(client?.statuses).toEqual([{ text: '200', share: 1 }])
  })

  it('counts in the given interval, and an IPv6 network as one client', async () => {
    const text = ['2001:db8:1:2::1', '2001:db8:1:2::2', '2001:db8:1:3::1'].map((client, i) => line(i, client)).join('')
    const report = await suggested(file('networks.log', text), '--interval', '2s')
    expect(report).toMatchObject({ clients: 2, interval: 2_000, busiest: { max: 2 } })
  })

  it('begins with the answer, and fits into 80 columns', async () => {
    const { code, out } = await weir(['suggest', log], { columns: 80 })
    expect(code).toBe(0)
    expect(out).toMatch(
      /^A limit of 1 per 1 min leaves 99 % of 201 clients alone\.\nIt rejects 49 \(19\.6 %\) of 250 requests, from 1 client\.\n/,
    )
    expect(out).toContain('192.0.2.66  50 in 1 min from 2026-03-07 12:01 UTC, 50 requests')
    for (const one of out.split('\n')) if (!one.includes(log)) expect(one.length).toBeLessThanOrEqual(80)
  })

  it.each(['rules.json', 'rules.yaml'])('is written as valid rules, and never over a file: %s', async (name) => {
    const path = join(file('suggest-folder', ''), '..', `suggested-${name}`)
    expect((await weir(['suggest', log, '--output', path])).code).toBe(0)
    const { code, out } = await weir(['plan', log, '--rules', path, '--nodes', '1', '--format', 'json'])
    expect([code, JSON.parse(out).plan.rejected]).toEqual([0, 49])
    const before = readFileSync(path, 'utf8')
    const again = await weir(['suggest', log, '--output', path])
    expect([again.code, again.err]).toEqual([2, expect.stringContaining('it exists. Remove it, or choose another name.')])
    expect(readFileSync(path, 'utf8')).toBe(before)
    // Known before the log is read.
    const unread = await weir(['suggest', join(path, '..', 'missing.log'), '--output', path])
    expect([unread.code, unread.err]).toEqual([2, expect.stringContaining('it exists.')])
  })

  it('contains no control characters of a log', async () => {
    const hostile = line(70, '192.0.2.1', 'GET /\x1b[2J HTTP/1.1', 'evil\x1b]0;owned\x07\x9b').repeat(60)
    const path = file('hostile-suggest.log', traffic + hostile)
    for (const args of [[], ['--json']]) {
      const { out } = await weir(['suggest', path, ...args])
      expect(out).toContain('evil')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be there
      expect(out).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
    }
  })

  it.each([
    [[log, '--max-keys', '100'], 'more than 100 clients'],
    [[log, '--interval', '1ms'], 'Use a duration from 1s to 1d.'],
    [['/none.log'], 'there is no such file'],
    [[file('nothing.log', 'nothing\n')], 'There is no request in'],
  ])('ends with 2: %j', async (args, message) => {
    const { code, out, err } = await weir(['suggest', ...args])
    expect([code, out, err]).toEqual([2, '', expect.stringContaining(message)])
  })
})

describe('memory', () => {
  it('is bounded for texts, and frequent ones are found', () => {
    const frequent = new Frequent()
    for (let i = 0; i < 10_000; i++) frequent.add(i % 3 === 0 ? 'often' : `${i}`)
    expect(frequent.top(1)[0]?.text).toBe('often')
    expect(frequent.top(100).length).toBeLessThanOrEqual(16)
  })

  it('has properties of at most 1,000 clients, the busiest', () => {
    const busiest = new Busiest(60_000)
    for (let client = 0; client < 5_000; client++) {
      for (let i = 0; i < 3 + (client % 50); i++)
        busiest.add(`${client}`, { time: 0, method: 'GET', target: '/', status: '200', field: () => 'agent' } as never)
    }
    busiest.close()
    const withTraits = busiest.above(0).filter(({ traits }) => traits !== undefined)
    expect(withTraits.length).toBeLessThanOrEqual(1_000)
    expect(withTraits.length).toBeGreaterThan(0)
    expect(busiest.above(51).every(({ traits }) => traits !== undefined)).toBe(true)
  })
})

const TRACES = join(process.env['WEIR_TRACES'] ?? '', 'raw', 'vps-2025.log.gz')
const missing = !existsSync(TRACES)

describe.skipIf(missing)(
  `a public log${missing ? ' (the environment variable WEIR_TRACES names no folder of recorded traffic)' : ''}`,
  () => {
    it('has the published percentiles, and rejections of an exact limiter', async () => {
      const report = await suggested(TRACES)
      expect(report).toMatchObject({ requests: 20_429, clients: 1_767 })
      expect(report.busiest).toEqual({ p50: 1, p90: 4, p95: 6, p99: 41, 'p99.5': 150, max: 1_262 })
      expect(report.others.find(({ limit }) => limit === 60)).toEqual({ limit: 60, rejected: 7_658, rejectedClients: 15 })
    })
  },
)
