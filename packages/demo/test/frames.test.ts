import pc from 'picocolors'
import { describe, expect, it } from 'vitest'
import { Tally } from '../src/traffic/tally.ts'
import { bar, safeText } from '../src/view/format.ts'
import { type LiveView, liveFrame } from '../src/view/live-frame.ts'
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
      blocked: [{ key: 'mallory', policy: 'client', left: 1_234 }],
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

describe('the frame', () => {
  it('shows gateways, the interval against its limits, the store, nodes, and who is blocked for how long', () => {
    const text = liveFrame(view(), plain)
    expect(text).toMatch(/Express 5 +│ +44 │ +16 │ +7 │ synced/)
    expect(text).toMatch(/together +│ +130 │ +50 │ +21 │/)
    expect(text).toMatch(/mallory \(5× its limit\) +█{30} +100 of 100 +50 rejected/)
    expect(text).toMatch(/everyone +█{8}░{22} +130 of 500/)
    expect(text).toContain('3 live processes, 9 syncs and 20 keys synced a second')
    expect(text).toContain('mallory 1.2 s left')
    expect(text).toContain('Redis was killed')
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
