import assert from 'node:assert/strict'
import type { FailMode, Throttler } from '@weir/core'
import type { Scheduled, WaitingCase, WaitingRun } from './run.ts'

const hasEnded = ({ ended }: Scheduled): boolean => ended !== undefined

/** Milliseconds until 30 requests of a key have started, beside 20 that leave if `leaving`. */
async function last30(run: WaitingRun, throttler: Throttler, key: string, leaving: boolean): Promise<number> {
  await run.align(1_000)
  const begun = run.now
  const controllers = [new AbortController(), new AbortController(), new AbortController()]
  const stay: Scheduled[] = []
  const leave: Scheduled[] = []
  for (let i = 0; i < 30; i++) {
    stay.push(run.schedule(throttler, {}, key))
    // These requests come after others that use all units meanwhile.
    if (!leaving || i < 10) continue
    const signal = controllers[i % 4]?.signal
    leave.push(run.schedule(throttler, signal ? { signal } : { timeout: 150, priority: 'low' }, key))
  }
  for (const controller of controllers) {
    controller.abort()
    await run.pass(20)
  }
  await run.until(() => [...stay, ...leave].every(hasEnded), 'all requests end')
  assert.deepEqual(new Set(stay.map(({ error }) => error)), new Set([undefined]))
  for (const { error } of leave) assert.match(`${error?.reason}`, /^(aborted|timeout)$/)
  return Math.max(...stay.map(({ at }) => at as number)) - begun
}

/** Lets requests wait while the store goes down and comes back. */
const outage = (failMode: FailMode): WaitingCase => ({
  title: `no request waits beyond its timeout while the store is down, and requests start again afterwards: failMode '${failMode}'`,
  needs: 'store',
  async run(run) {
    const throttler = await run.process({ failMode })
    const requests = Array.from({ length: 60 }, (_, i) => run.schedule(throttler, { timeout: 2_000 + 100 * i }))
    await run.pass(100)
    const comeBack = await run.fixture.goAway?.()
    await run.pass(3_000)
    await comeBack?.()
    await run.pass(6_000)
    for (const [i, { ended, came }] of requests.entries()) {
      assert.notEqual(ended, undefined, `request ${i} ends`)
      assert.ok((ended as number) - came <= 2_000 + 100 * i + 400, `request ${i} waits beyond its timeout`)
    }
    assert.equal(throttler.waiting, 0)
    const next = run.schedule(throttler, { timeout: '5s' })
    await run.until(() => next.at !== undefined, 'the next request starts', 5_000)
  },
})

/** Checks that nothing is left of the waiting requests, and that no more are accepted. */
async function endsClosed(run: WaitingRun, throttler: Throttler): Promise<void> {
  const late = run.schedule(throttler)
  await run.pass(100)
  assert.equal(late.error?.reason, 'closed')
  assert.equal(throttler.waiting, 0)
  assert.equal(run.timersOf(throttler).outstanding, 0, 'no timer is left')
}

/** Requests that leave, manual blocks, outages, and the end of a process. */
export const endingCases: readonly WaitingCase[] = [
  {
    title: 'a request that is aborted or times out uses no units',
    async run(run) {
      const throttler = await run.process({ limit: run.slots ? 2 : 10 })
      const alone = await last30(run, throttler, 'alone', false)
      const beside = await last30(run, throttler, 'beside', true)
      assert.ok(beside <= alone + 100, `the last request started after ${beside} ms, and without those that left after ${alone} ms`)
    },
  },
  {
    title: 'a manual block stops the queue of its key, and the requests start when it ends',
    async run(run) {
      const throttler = await run.process({ limit: run.slots ? 4 : 20 })
      const requests = Array.from({ length: 100 }, () => run.schedule(throttler))
      await run.pass(100)
      throttler.block('a', 3_000)
      await run.pass(100)
      const started = requests.filter(hasEnded).length
      await run.pass(2_700)
      assert.equal(requests.filter(hasEnded).length, started)
      await run.until(() => requests.every(({ at }) => at !== undefined), 'all requests start')
    },
  },
  outage('share'),
  outage('open'),
  outage('closed'),
  {
    title: 'close lets requests start that can within closeTimeout, and rejects the others',
    async run(run) {
      const throttler = await run.process({}, { closeTimeout: 1_000 })
      await run.align(1_000)
      const requests = Array.from({ length: 200 }, () => run.schedule(throttler))
      await run.pass(100)
      const before = requests.filter(hasEnded).length
      const took = await run.close(throttler)
      assert.ok(took <= 1_200, `close() took ${took} ms`)
      assert.ok(requests.every(hasEnded))
      const started = requests.filter(({ at }) => at !== undefined).length
      // The time at which a slot is released is unknown.
      if (!run.slots) assert.ok(started > before, 'requests start meanwhile')
      for (const { at, error } of requests) assert.equal(at === undefined, error?.reason === 'closed')
      await endsClosed(run, throttler)
    },
  },
  {
    title: "close with onClose: 'reject' rejects all immediately",
    async run(run) {
      const throttler = await run.process({ limit: 4 }, { queue: { onClose: 'reject' } })
      const requests = Array.from({ length: 50 }, () => run.schedule(throttler))
      await run.pass(10)
      const took = await run.close(throttler)
      assert.ok(took <= 300, `close() took ${took} ms`)
      const closed = requests.filter(({ error }) => error?.reason === 'closed').length
      assert.ok(closed >= 40, `${closed} of 50 requests were rejected`)
      await endsClosed(run, throttler)
    },
  },
]
