import pc from 'picocolors'
import { describe, expect, it } from 'vitest'
import { Tally } from '../src/traffic/tally.ts'
import { bar, safeText } from '../src/view/format.ts'
import { type LiveView, liveFrame } from '../src/view/live-frame.ts'
import { intervalLine } from '../src/view/live-lines.ts'
import { replayFrame } from '../src/view/replay-frame.ts'
import { placed } from '../src/view/screen.ts'

const plain = pc.createColors(false)

function view(): LiveView {
  const tally = new Tally(3, 1000)
  for (let i = 0; i < 150; i++)
    tally.add({ gateway: i % 3, client: 'mallory', status: i < 100 ? 200 : 429, arrived: 5000 + i, late: 0, storeDown: false })
  for (let i = 0; i < 30; i++) tally.add({ gateway: i % 3, client: 'alice', status: 200, arrived: 5000 + i, late: 0, storeDown: false })
  return {
    storeText: 'a store',
    namespace: 'weir-demo-ab12cd34',
    elapsed: 2_500,
    total: 30_000,
    gateways: ['Express 5', 'Fastify 5', 'Koa 3'].map((about, i) => ({
      about,
      state: 'synced',
      count: tally.gateways[i] ?? { allowed: 0, rejected: 0, errors: 0 },
      syncs: 7,
    })),
    status: {
      nodes: 3,
      states: [],
      syncs: 21,
      failures: 0,
      entries: 40,
      commands: undefined,
      limited: [{ key: 'mallory', policy: 'client', left: 1_234 }],
    },
    rates: { syncs: 9, operations: 20 },
    limit: 100,
    globalLimit: 500,
    interval: 1000,
    current: tally.at(5),
    whole: false,
    past: [],
    events: ['2.0 s  Redis was killed'],
  }
}

/** Characters of the longest line. */
const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length))

describe('the frame', () => {
  it('fits into 80 columns, with many clients and large counts', () => {
    const wide = view()
    const limited = Array.from({ length: 9 }, (_, i) => ({ key: `2001:db8:0:0:0:0:0:${i}`, policy: 'client', left: 12_345 }))
    const count = { allowed: 123_456, rejected: 123_456, errors: 0 }
    const large: LiveView = {
      ...wide,
      storeText: 'Redis, a private redis-server 7.0.15 on port 65535',
      gateways: wide.gateways.map((one) => ({ ...one, count, syncs: 12_345 })),
      status: { ...wide.status, failures: 123, commands: 1, limited },
      rates: { syncs: 1_234, operations: 12_345 },
    }
    expect(
      liveFrame(large, plain)
        .split('\n')
        .filter(({ length }) => length > 80),
    ).toEqual([])
    const replayed = { ...large, logTime: 0, logInterval: 60_000, current: large.current, rejected: [...large.current.clients] }
    expect(
      replayFrame(replayed, plain)
        .split('\n')
        .filter(({ length }) => length > 80),
    ).toEqual([])
    const interval = { ordinal: 5, total: count, clients: new Map([['mallory', count]]) }
    const times = new Map(limited.map(({ key, left }) => [key, left]))
    expect(widest(intervalLine({ ...large, gateways: wide.gateways }, interval as never, 100_000, times))).toBeLessThanOrEqual(80)
  })

  it('shows gateways, the interval against its limits, the store, processes, and the limited clients', () => {
    const text = liveFrame(view(), plain)
    expect(text).toMatch(/Express 5 +│ +44 │ +16 │ +7 │ synced/)
    expect(text).toMatch(/together +│ +130 │ +50 │ +21 │/)
    expect(text).toMatch(/mallory \(5× its limit\) +█{20} +100 of 100 +50 rejected/)
    expect(text).toMatch(/everyone +█{5}░{15} +130 of 500/)
    expect(text).toContain('3 live processes, 9 syncs and 20 keys a second')
    expect(text).toContain('mallory 1.2 s left')
    expect(text).toContain('Redis was killed')
    expect(text).toContain('weir-demo-ab12cd34')
  })

  it('of a replay shows text of untrusted clients harmlessly', () => {
    const tally = new Tally(3, 1000)
    tally.add({ gateway: 0, client: 'evil\x1b[2J\x07', status: 429, arrived: 0, late: 0, storeDown: false })
    const text = replayFrame({ ...view(), logTime: 0, logInterval: 60_000, current: tally.at(0), rejected: [...tally.clients] }, plain)
    expect(text).toContain('evil\\x1b[2J\\x07 1 time')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
    expect(text).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/)
  })

  it('says whether its interval is over', () => {
    expect(liveFrame(view(), plain)).toContain('this interval of 1 s')
    expect(liveFrame({ ...view(), whole: true }, plain)).toContain('the last interval of 1 s')
  })

  it('is drawn whole, and fits a low window by leaving out what says least', () => {
    const frame = ['', 'title', '', 'table', '', 'last'].join('\n')
    const lines = (rows: number) =>
      placed(frame, rows)
        // biome-ignore lint/suspicious/noControlCharactersInRegex: cursor movements are what it is about
        .replace(/\x1b\[[?\d]*[a-zA-Z]/g, '')
        .split('\r\n')
    expect(lines(24)).toEqual(['', 'title', '', 'table', '', 'last'])
    expect(lines(5)).toEqual(['title', 'table', 'last'])
    expect(lines(2)).toEqual(['table', 'last'])
  })

  it('has bars that stay in their width', () => {
    for (const value of [0, 1, 50, 99, 100, 101, 1e9]) expect(bar(value, 100, 20, plain)).toHaveLength(21)
    expect(bar(101, 100, 20, plain)).toMatch(/▶$/)
    expect(safeText('x'.repeat(99), 10)).toBe(`${'x'.repeat(9)}…`)
  })
})
