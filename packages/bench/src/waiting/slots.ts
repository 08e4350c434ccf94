import { concurrency } from '@weir/core'
import { type Report, type Row, round } from '../harness/report.ts'
import { startNodes } from './nodes.ts'

/** Requests that wait or are in flight in each process at any time. */
const BUSY = 5
const SEED = 3

/**
 * Processes in each of which requests wait for a slot at any time, in virtual time. Returns each process's part of all slots, and
 * the part of the time in which slots were in use.
 *
 * @param hold milliseconds for which a request uses a slot, on average
 */
async function slots(limit: number, nodes: number, roundTrip: number, hold: number, seconds: number) {
  const policy = { limit, algorithm: concurrency(), coordination: 'leased', failMode: 'closed' } as const
  const { time, random, throttlers, stop } = await startNodes({ policy, nodes, roundTrip, seed: SEED, queue: { maxWait: '1h' } })
  await time.runUntil(0)
  const lengths = random.stream('lengths')
  const got = throttlers.map(() => 0)
  let used = 0
  for (const [node, throttler] of throttlers.entries()) {
    const one = async (): Promise<void> => {
      const decision = await throttler.acquire('key')
      const length = hold * (0.5 + lengths.next())
      got[node] = (got[node] as number) + 1
      used += length
      time.at(time.now + length, () => {
        throttler.release(decision)
        void one()
      })
    }
    for (let i = 0; i < BUSY; i++) void one()
  }
  await time.runUntil(seconds * 1_000)
  stop()
  const all = got.reduce((sum, count) => sum + count, 0)
  return { parts: got.map((count) => count / all).sort((a, b) => b - a), used: used / (limit * seconds * 1_000) }
}

/** The share of each process if `concurrency()` has few slots for the number of processes. */
export async function fewSlots(quick: boolean): Promise<Report> {
  const rows: Row[] = []
  for (const [limit, nodes] of [
    [10, 3],
    [4, 3],
    [2, 3],
    [4, 12],
  ] as const) {
    for (const hold of [20, 200]) {
      const { parts, used } = await slots(limit, nodes, 1, hold, quick ? 20 : 60)
      rows.push({
        slots: limit,
        nodes,
        'held for, ms': hold,
        'a node got, %': parts.map((part) => Math.round(100 * part)).join(' '),
        'in use, part of the time': round(used),
      })
    }
  }
  return { title: 'Nodes that wait for slots over all nodes, in virtual time', rows }
}
