import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AuditEntry } from '@weir/core/inspect'
import { onTestFinished } from 'vitest'
import { PAGE } from '../src/page.generated.ts'
import type { Found, LimitedView, NodeView, PolicyView, Series, View } from '../src/protocol.ts'

const MINUTE = 60_000

/** A request that the page has sent. */
interface Sent {
  readonly action: string
  readonly body: Record<string, unknown>
}

interface Canned {
  readonly url: string
  /** All requests of the page so far, in their order. */
  readonly sent: readonly Sent[]
  /** Sends another view to the page. */
  show(view: View): void
}

/** A server that sends one view to the page, so that each number on it is fixed. It answers each action with `answers`. */
export async function canned(view: View, answers: Readonly<Record<string, unknown>> = {}): Promise<Canned> {
  const sent: Sent[] = []
  const streams = new Set<ServerResponse>()
  let now = view
  const write = (response: ServerResponse): boolean => response.write(`event: view\ndata: ${JSON.stringify(now)}\n\n`)
  const server = createServer(async (request, response) => {
    const action = (request.url ?? '').slice(1)
    if (action === 'events') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      const points = Array.from({ length: 120 }, (_, i) => [view.time - (120 - i) * 1_000, 40, i % 9, i < 60 && i > 30 ? null : 2])
      const hello = { build: 'canned', history: points, earlier: [], signOut: false }
      response.write(`event: hello\ndata: ${JSON.stringify(hello)}\n\n`)
      write(response)
      streams.add(response)
    } else if (request.method === 'POST') {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      sent.push({ action, body: JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown> })
      response
        .writeHead(200, { 'Content-Type': 'application/json' })
        .end(JSON.stringify(answers[action] ?? DEFAULTS[action] ?? { done: true }))
    } else response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(PAGE)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    sent,
    show: (next) => {
      now = next
      for (const stream of streams) write(stream)
    },
  }
}

const DEFAULTS: Readonly<Record<string, unknown>> = {
  audit: { entries: [] } satisfies { entries: AuditEntry[] },
  series: {
    points: [
      [Date.now() - MINUTE, 3, 1],
      [Date.now(), 4, 2],
    ],
  } satisfies Series,
  find: { parts: [], key: '', events: [], note: '', blocked: [], matches: [] } satisfies Found,
}

/** A view with the given processes, and a policy of each mode. */
export function viewOf(processes: number, part: Partial<View> = {}): View {
  const time = Date.now()
  const policies = [policyOf('per-user', 'enforced'), policyOf('trial', 'dry-run'), policyOf('next:per-user', 'candidate')]
  return {
    time,
    node: 'n0',
    state: 'synced',
    storeDownMs: 0,
    nodeCount: processes,
    reported: processes,
    actions: true,
    point: [time, 40, 5, 2],
    reasons: [{ reason: 'limit', rate: 5, total: 320 }],
    policies,
    nodes: Array.from({ length: processes }, (_, i) => nodeOf(i, processes)),
    top: policies.flatMap(({ name }) =>
      Array.from({ length: 25 }, (_, i) => ({ policy: name, key: `user-${i}`, used: 60 - i, limit: 60, debt: 0 })),
    ),
    waiting: [],
    blocked: policies.map(({ name }) => ({
      policy: name,
      key: `blocked in ${name}`,
      remainingMs: 42_000,
      cause: 'cooldown',
      untilIntervalEnd: true,
    })),
    limited: policies.flatMap(({ name, mode }) => [limitedOf(`mallory in ${name}`, name, mode), limitedOf(`eve in ${name}`, name, mode)]),
    outages: [[time - 90_000, time - 60_000]],
    sync: { failures: 113, failuresLastHour: 3 } as View['sync'],
    log: [
      { time, kind: 'blocked', text: 'mallory in per-user for 42 s', process: 'gateway-1', mode: 'enforced' },
      { time, kind: 'blocked', text: 'mallory in trial for 42 s', process: 'gateway-1', mode: 'dry-run' },
      { time: time - 90_000, kind: 'storeDown', text: 'The store is down', process: 'gateway-0' },
    ],
    judged: {
      policies: [{ name: 'per-user', allowed: 750, rejected: 250, enforcedRejected: 200 }],
      keys: [{ policy: 'per-user', key: 'mallory', rejected: 250 }],
    },
    notes: {},
    ...part,
  }
}

export function policyOf(name: string, mode: PolicyView['mode'], part: Partial<PolicyView> = {}): PolicyView {
  return {
    name,
    mode,
    limit: 60,
    intervalMs: MINUTE,
    algorithm: 'fixed-window',
    capacity: 60,
    keyedBy: 'ip',
    cooldownMs: 30_000,
    coordination: 'background',
    dryRun: mode !== 'enforced',
    blocked: 1,
    atLimit: 2,
    keys: 25,
    maxKeys: 100_000,
    inFlight: 0,
    reservations: { open: 0, units: 0 },
    waiting: 0,
    longestWaitMs: 0,
    unsynced: 4,
    leased: 0,
    overshoot: 0.02,
    measuredOvershoot: 0.05,
    busiest: [60, 60, 60, 51, 48, 44, 40, 33, 20, 11, 9, 4, 2, 1],
    debt: 0,
    allowedRate: 40,
    rejectedRate: 5,
    ...part,
  }
}

function nodeOf(i: number, of: number): NodeView {
  return {
    node: `n${i}`,
    label: `gateway-${i}`,
    self: i === 0,
    state: 'synced',
    ageMs: 400,
    uptimeMs: 3_600_000,
    roundTripMs: 2,
    failures: 113,
    failuresLastHour: 3,
    clockOffsetMs: 0,
    rules: undefined,
    allowedRate: 40 / of,
    rejectedRate: 5 / of,
    stale: false,
    unsynced: 1,
    share: 1 / of,
  } as NodeView
}

function limitedOf(key: string, policy: string, mode: LimitedView['mode']): LimitedView {
  const now = Date.now()
  const spark = Array.from({ length: 60 }, (_, i) => (i > 40 ? i % 7 : 0))
  return { policy, key, mode, reason: 'limit', lastMinute: 31, total: 220, since: now - 5 * MINUTE, last: now, processes: 2, spark }
}
