import assert from 'node:assert/strict'
import type { PolicyOptions, Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import type { Scheduled, WaitingCase, WaitingRun } from './run.ts'

/** Milliseconds within which a failure counts as immediate. The store needs time to answer. */
const AT_ONCE = 400

const failures = (requests: readonly Scheduled[]) => requests.map(({ error }) => error?.reason)

/** Decides about a request of a client as an adapter does, and delays it. */
async function handle(run: WaitingRun, throttler: Throttler, key: string, client: string | undefined): Promise<void> {
  const patience = { clock: run.clock, timeout: 1_000 }
  const delayed = { client, patience, ask: () => undefined, whenGone: () => () => {} }
  const decision = await adapterOf(throttler).decideAsync([key], [1], [0], 1, undefined, delayed)
  if (decision.allowed && decision.delayMs > 0) await throttler.waitFor(decision, undefined, client)
}

/** Sends requests of a client, two for each of `keys` keys. Returns how many more are delayed afterwards. */
async function flood(run: WaitingRun, throttler: Throttler, client: string | undefined, keys: number): Promise<number> {
  const before = throttler.waiting
  for (let i = 0; i < keys; i++) {
    const key = `${client} ${run.now}`
    for (let request = 0; request < 2; request++) {
      handle(run, throttler, key, client).catch(() => {})
      await run.pass(10)
    }
  }
  return throttler.waiting - before
}

/** Requests that can't start, and the bounds of the queue, of timers and of limits. */
export const boundCases: readonly WaitingCase[] = [
  {
    title: "a request that can't make its timeout, or never fits, fails immediately",
    async run(run) {
      const throttler = await run.process({ interval: '1h' })
      await run.fill(throttler)
      const late = run.schedule(throttler, { timeout: '5s' })
      const big = run.schedule(throttler, { cost: 1e6 }, 'b')
      const none = run.schedule(throttler, { limit: 0 }, 'c')
      await run.pass(AT_ONCE)
      assert.deepEqual(failures([big, none]), ['never-fits', 'never-fits'])
      // The time at which a slot is released is unknown.
      if (run.slots) await run.pass(5_000)
      assert.equal(late.error?.reason, 'timeout')
      if (!run.slots) assert.ok((late.error?.retryAfterMs as number) > 5_000)
      assert.equal(throttler.waiting, 0)
    },
  },
  {
    title: 'a full queue rejects immediately: maxWaitingPerKey for one key, maxWaiting for all',
    async run(run) {
      const throttler = await run.process({ limit: 1, interval: '1h' }, { queue: { maxWaiting: 5, maxWaitingPerKey: 3, maxWait: '24h' } })
      for (const key of ['a', 'b']) await run.fill(throttler, key)
      const requests = [...'aaaabbb'].map((key) => run.schedule(throttler, { timeout: '23h' }, key))
      await run.pass(AT_ONCE)
      const full = 'queue-full'
      assert.deepEqual(failures(requests), [undefined, undefined, undefined, full, undefined, undefined, full])
      assert.equal(throttler.waiting, 5)
    },
  },
  {
    title: 'a client in middleware uses as many places as are free, so others find some',
    async run(run) {
      const { algorithm } = run.subject
      // A pace delays by itself. Requests that wait for others need the option.
      const own: Partial<PolicyOptions> = algorithm.delay === undefined ? { limit: 1, delay: '2h' } : { limit: 4 }
      const throttler = await run.process({ interval: '1h', ...own }, { queue: { maxWaiting: 16, maxWait: '3h', onClose: 'reject' } })
      const held: number[] = []
      for (const [client, keys] of [
        ['m', 20],
        ['n', 12],
        ['m', 2],
        ['o', 1],
        ['p', 1],
        [undefined, 4],
        ['q', 2],
      ] as const)
        held.push(await flood(run, throttler, client, keys))
      // Requests without a known client are bounded only by the sum.
      assert.deepEqual(held, [8, 4, 0, 1, 1, 2, 0])
      await run.close(throttler)
      assert.equal(throttler.waiting, 0)
    },
  },
  {
    title: '1,000 waiting requests of a key have a bounded number of timers',
    async run(run) {
      const throttler = await run.process({ limit: 20 }, { queue: { maxWait: '60s', onClose: 'reject' } })
      const before = run.timersOf(throttler)
      for (let i = 0; i < 1_000; i++) run.schedule(throttler, { timeout: 55_000 + i })
      await run.pass(1)
      assert.ok(throttler.waiting > 900, `${throttler.waiting} requests wait`)
      const { set, outstanding } = run.timersOf(throttler)
      const most = run.real ? 100 : 10
      assert.ok(set - before.set < most, `${set - before.set} timers were set`)
      assert.ok(outstanding - before.outstanding < most, `${outstanding - before.outstanding} timers are set`)
    },
  },
  {
    title: 'limits of two requests of a key do not overwrite each other',
    async run(run) {
      const throttler = await run.process({ limit: 5, interval: 60_000 })
      // A pace delays the units of one request, too.
      const cost = run.subject.algorithm.delay === undefined ? 50 : 1
      const ask = async (key: string, isAllowed: boolean | undefined) => {
        const options = [
          { limit: 100, cost },
          { limit: 10, cost: cost === 1 ? 1 : 2 },
        ]
        const both = Promise.all(options.map((one) => throttler.tryAcquire(key, { ...one, timeout: 500 })))
        await run.pass(1_000)
        const [first, second] = await both
        assert.deepEqual([first?.allowed, first?.limit, second?.limit], [isAllowed ?? first?.allowed, 100, 10])
      }
      await ask('a', true)
      // Both are decided without the store, because it does not answer in time. Units of a lease can't be granted then.
      const comeBack = await run.fixture.goAway?.()
      await ask('b', run.subject.coordination === 'leased' ? undefined : true)
      await comeBack?.()
    },
  },
]
