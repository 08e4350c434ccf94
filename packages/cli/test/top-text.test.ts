import { Readable, Writable } from 'node:stream'
import type { Store } from '@weir/core'
import type { LimitedKey } from '@weir/core/inspect'
import type { StoreConnection } from '@weir/core/sync'
import { expect, test } from 'vitest'
import { type ClusterView, ofMode, StoreWatch } from '../src/cluster/store-watch.ts'
import { topText } from '../src/commands/top-text.ts'
import { Output } from '../src/terminal/output.ts'

const NUMBERS =
  'limit intervalMs capacity keys blocked allowed rejected inFlight waiting longestWaitMs unsynced leased overshoot measuredOvershoot debt share'

function policy(name: string, dryRun: boolean, measuredOvershoot: number, overshoot: number) {
  const numbers = Object.fromEntries(NUMBERS.split(' ').map((number) => [number, 100]))
  return { ...numbers, name, algorithm: 'fixed-window', coordination: 'background', dryRun, measuredOvershoot, overshoot }
}

const LOGIN = policy('login', false, 0.2, 0.1)
const POLICIES = [LOGIN, policy('soon', true, 0.9, 0.9), policy('next:login', true, 0.8, 0.8)]

function limited(policy: string, key: string, more: Partial<LimitedKey> = {}): LimitedKey {
  return { policy, key, reason: 'limit', rejectedLastMinute: 5, rejected: 50, sinceFirstMs: 10_000, sinceLastMs: 1_000, ...more }
}

/** A process's report about itself. */
function report(label: string, limited: readonly LimitedKey[], policies: readonly object[] = POLICIES, top: readonly object[] = []) {
  const reasons = { limit: 1, cooldown: 0, blocked: 0, storeDown: 0, overflow: 0, denied: 0, queue: 0 }
  const history = { slot: 15_000, ended: 0, allowed: [], rejected: [] }
  const times = { uptimeMs: 1, storeDownMs: 0, roundTripMs: 999.9, failures: 0, failuresLastHour: 0, clockOffsetMs: 0 }
  const requests = { allowed: 123_456_789, rejected: 12_345_678, reasons, history }
  return JSON.stringify({
    node: label,
    label,
    state: 'storeDown',
    ...times,
    requests,
    policies,
    top,
    limited,
    waiting: [],
    wouldReject: [],
    events: [],
  })
}

/** The view of a store whose processes sent these reports, with their age. */
async function look(statuses: readonly (readonly [status: string, age: number])[]): Promise<ClusterView> {
  const heartbeat = {
    nodes: statuses.length + 1,
    generation: '',
    cursor: '1',
    blocks: [{ policyId: 'login', key: 'k'.repeat(200), remaining: 86_399_000, manual: true }],
    hot: [],
    statuses: statuses.map(([status, age], i) => ({ node: String(i), status, age })),
  }
  const connection = { sync: async () => ({ time: 0, results: [], blocks: [], heartbeat }), close: async () => {} }
  return await new StoreWatch({ kind: 'mine', open: () => connection as unknown as StoreConnection } as unknown as Store).look()
}

/** The lines for a terminal of this width. */
function textOf(view: ClusterView, columns: number): readonly string[] {
  const stdout = Object.assign(new Writable({ write: (_piece, _encoding, done) => done() }), { columns })
  return topText(view, 10, new Output({ stdin: Readable.from([]), stdout, stderr: stdout, env: {} }))
}

test('a look adds up the rejections of a key in all processes, and the modes are separate', async () => {
  const view = await look([
    [report('a', [limited('login', 'x'), limited('login', 'y', { rejectedLastMinute: 8 }), limited('soon', 'x')]), 100],
    [report('b', [limited('login', 'x', { reason: 'cooldown', sinceFirstMs: 90_000, sinceLastMs: 10 }), limited('next:login', 'z')]), 500],
  ])
  expect(view.limited.map(({ policy, key }) => `${policy} ${key}`)).toEqual(['login x', 'login y', 'soon x', 'next:login z'])
  expect(view.limited[0]).toEqual({
    policy: 'login',
    key: 'x',
    reason: 'cooldown',
    rejectedLastMinute: 10,
    rejected: 100,
    sinceFirstMs: 90_500,
    sinceLastMs: 510,
    processes: 2,
  })
  const enforced = ofMode(view, 'enforced')
  expect(enforced.limited.map(({ key }) => key)).toEqual(['x', 'y'])
  expect(enforced.overshoot).toEqual({ measured: 0.2, possible: 0.1 })
  expect(enforced.blocked).toHaveLength(1)
  expect(ofMode(view, 'dry-run')).toMatchObject({ limited: [{ policy: 'soon' }], overshoot: { measured: 0.9 }, blocked: [] })
  expect(ofMode(view, 'candidate')).toMatchObject({ limited: [{ policy: 'next:login' }], overshoot: { measured: 0.8, possible: 0.8 } })
})

test.each([80, 120])('each line fits %i columns, whatever the names are', async (columns) => {
  const long = `2001:db8:\x1b[31m${'ü'.repeat(300)}`
  const top = [{ policy: long, key: long, used: 1_234_567, own: 1, limit: 100 }]
  const rejected = { rejectedLastMinute: 1_234_567, rejected: 123_456_789, sinceFirstMs: 86_399_000, sinceLastMs: 59_600 }
  const status = report(`${'web-'.repeat(50)}:123456`, [limited(long.slice(0, 200), long, rejected)], [policy(long, false, 1, 1)], top)
  const view = ofMode(await look([[status, 1_234]]), 'enforced')
  const lines = textOf(view, columns)
  expect(lines.filter(({ length }) => length > columns)).toEqual([])
  expect(lines.filter((line) => line.includes('web-web') || line.includes('2001:db8'))).toHaveLength(3)
  expect(lines.join('\n')).not.toContain('\x1b')
  expect(lines.slice(0, 4).join('\n')).toMatch(
    /^limited now: 1 key\n┌.*\n│ policy .* │ key .* │ reason .* │ +last min │ +total │ +since │ +last │\n/,
  )
})

test.each([80, 120])('policies with open reservations are a table, in %i columns', async (columns) => {
  const long = `tokens \x1b[31m${'ü'.repeat(300)}`
  const tokens = (units: number, name = 'tokens') => ({ ...policy(name, false, 0, 0), reservations: { open: 3, units } })
  const reports = [
    [LOGIN, tokens(2_700), tokens(9, long)],
    [LOGIN, tokens(1_300)],
    [LOGIN, { ...tokens(7, 'soon'), dryRun: true }],
  ].map((policies, i) => [report(String(i), [], policies), 100] as const)
  const view = ofMode(await look(reports), 'enforced')
  expect(view.reservations).toEqual([
    { policy: 'tokens', open: 6, units: 4_000 },
    { policy: long, open: 3, units: 9 },
  ])
  const lines = textOf(view, columns)
  expect(lines.join('\n')).toMatch(
    /open reservations\n┌.*\n│ policy +│ open │ units reserved │\n├.*\n│ tokens +│ +6 │ +4,000 │\n│ tokens \\x1b/,
  )
  expect(lines.filter(({ length }) => length > columns)).toEqual([])
  expect(textOf({ ...view, reservations: [] }, columns).join('\n')).not.toContain('reserv')
})

test('the debt of a bucket is shown beside its level', () => {
  const hot = [{ policy: 'bucket', key: '2001:db8::'.repeat(9), used: 1_999_999, limit: 1_999_999, debt: 999_999 }]
  const view: ClusterView = { live: 1, nodes: [], limited: [], overshoot: { measured: 0, possible: 0 }, hot, reservations: [], blocked: [] }
  const lines = textOf(view, 80)
  expect(lines.join('\n')).toMatch(/│ +2\.0 M \+ 999,999 debt │ +2\.0 M │ 100\.0 % │/)
  expect(lines.filter(({ length }) => length > 80)).toEqual([])
})
