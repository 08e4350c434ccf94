import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { bookedOf, differenceOf } from '../src/faults/books.ts'
import { Clients } from '../src/faults/clients.ts'
import { RemoteNode, renewAll } from '../src/faults/fleet.ts'
import { allowedOf, overshootOf, verdictOf } from '../src/faults/judge.ts'
import { ADAPTERS, type Adapter, monotonic, type Rule, sleep } from '../src/faults/protocol.ts'
import type { Stage } from '../src/faults/servers.ts'
import { faketimeLibrary, ShiftedClock } from '../src/faults/shifted-clock.ts'
import { openStage } from '../src/faults/stage.ts'

// Three processes on a busy machine need long timeouts.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 120_000 })

const HOUR = 3_600
const library = faketimeLibrary()
if (library === undefined) console.warn('libfaketime is not installed (Debian: libfaketime): no clocks of real processes are stepped.')

describe.skipIf(library === undefined)('processes whose clocks are two seconds apart, behind a real Redis', () => {
  let clocks: ShiftedClock[]
  let nodes: RemoteNode[]
  let stage: Stage

  beforeAll(async () => {
    clocks = [-2, 0, 2].map((seconds) => new ShiftedClock(library as string, seconds))
    stage = await openStage('server')
    nodes = await Promise.all(clocks.map(({ env }, i) => RemoteNode.start(ADAPTERS[i] as Adapter, { env })))
  })
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.kill()))
    await stage.stop()
    for (const clock of clocks) clock.remove()
  })

  test('keep a limit from their start on, and while two of the clocks are stepped by an hour and back', async () => {
    const [behind, right] = clocks as [ShiftedClock, ShiftedClock]
    const [limit, interval, rate] = [400, 2_000, 500]
    const rule: Rule = { namespace: `clocks-${process.pid}`, target: stage.target, limit, interval, spans: 4 }
    await renewAll(nodes, rule)
    const clients = new Clients(nodes, { steady: 50, greedy: rate }, 3)
    await sleep(3_000)
    behind.set(HOUR)
    right.set(-HOUR)
    await sleep(3_500)
    behind.set(-2)
    right.set(0)
    await sleep(1_500)
    await clients.stop()
    const offset = Date.now() - monotonic()
    await Promise.all(nodes.map((node) => node.ask({ type: 'close' })))

    const verdict = verdictOf(clients.seen)
    expect(verdict).toMatchObject({ answered: clients.seen.length, serverErrors: 0, strange: 0 })
    expect(clients.seen.filter(({ key, status }) => key === 'steady' && status !== 200)).toEqual([])
    expect(nodes.flatMap(({ states }) => states)).toEqual([])
    // The part that processes allow before counts arrive, which a busy machine delays. With their own intervals they would allow
    // everything.
    const unheard = (rate * (verdict.slowest / 1000)) / limit
    expect(overshootOf(clients.seen, rule, offset).worst).toBeLessThan(0.1 + unheard)
    expect(differenceOf(allowedOf(clients.seen), await bookedOf(stage.servers, rule.namespace))).toEqual({ lost: 0, doubled: 0 })
  })
})
