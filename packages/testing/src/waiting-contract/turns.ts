import assert from 'node:assert/strict'
import type { Priority, Throttler } from '@weir/core'
import type { Scheduled, WaitingCase, WaitingRun } from './run.ts'

/** Pairs in the wrong order, of 200 requests in ten bursts. The first requests come before the code of the queue is loaded. */
async function inversionsOf200(run: WaitingRun, priorityOf: (i: number) => Priority): Promise<string[]> {
  const throttler = await run.process({ limit: run.slots ? 4 : 50 })
  const all: Scheduled[] = []
  for (let burst = 0; burst < 10; burst++) {
    for (let i = 0; i < 20; i++) all.push(run.schedule(throttler, { priority: priorityOf(all.length) }))
    await run.pass(30)
  }
  await run.until(() => all.every(({ ended }) => ended !== undefined), 'all requests start', 30_000)
  return inversions(all, run.real ? 5 : 0)
}

/**
 * Finds pairs whose second request started first, although it came later and is not more urgent, or is less urgent and the first
 * already waited.
 *
 * @param moment milliseconds within which the order of two requests is unknown
 */
function inversions(all: readonly Scheduled[], moment: number): string[] {
  const found: string[] = []
  for (const one of all) {
    assert.equal(one.error, undefined)
    for (const other of all) {
      if ((other.place as number) >= (one.place as number)) continue
      const later = other.number > one.number && other.priority <= one.priority
      // The less urgent request started clearly after the more urgent one had come.
      const lessUrgent = other.priority < one.priority && one.came + moment < (other.at as number)
      if (later || lessUrgent) found.push(`${other.number} (priority ${other.priority}) before ${one.number} (${one.priority})`)
    }
  }
  return found
}

const MIXED = ['default', 'critical', 'low', 'default', 'high'] as const

/** The order of the requests of a key, in one process and between several. */
export const turnCases: readonly WaitingCase[] = [
  {
    title: 'requests of a key start in the order in which they came',
    async run(run) {
      assert.deepEqual(await inversionsOf200(run, () => 'default'), [])
    },
  },
  {
    title: 'a request with a higher priority starts first, even before requests that already have a reservation',
    async run(run) {
      assert.deepEqual(await inversionsOf200(run, (i) => MIXED[i % MIXED.length] as Priority), [])
    },
  },
  {
    title: 'processes are served by the number of requests that wait with them',
    needs: 'turns',
    async run(run) {
      const parts = [1, 2, 3, 6]
      const throttlers: Throttler[] = []
      for (const _ of parts) throttlers.push(await run.process({ limit: 60 }))
      await run.align(1_000)
      const begun = run.now
      const all = throttlers.map((throttler, i) => Array.from({ length: 120 * (parts[i] as number) }, () => run.schedule(throttler)))
      await run.pass(14_900)
      const served = all.map((requests) => requests.filter(({ at }) => at !== undefined && at >= begun + 2_900).length)
      const sum = served.reduce((total, count) => total + count, 0)
      assert.ok(sum >= 0.98 * 12 * 60, `${sum} of ${12 * 60} requests started`)
      for (const [i, count] of served.entries()) {
        const part = count / (60 * (parts[i] as number))
        assert.ok(part > 0.8 && part < 1.2, `${served} requests of processes with ${parts} parts started`)
      }
    },
  },
]
