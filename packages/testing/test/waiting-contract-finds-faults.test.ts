import { type Algorithm, fixedWindow, type Meter, memoryStore } from '@weir/core'
import { Hub } from '@weir/core/memory'
import { describe, expect, test } from 'vitest'
import { manualClock, type WaitingContractOptions, type WaitingFixture, type WaitingUnderTest, waitingContract } from '../src/index.ts'

/** Runs the contract without a test runner. Returns its cases, and the message of each case that failed. */
async function failuresOf(subject: WaitingUnderTest, without: WaitingContractOptions['without'] = {}) {
  const cases: { readonly title: string; readonly run: () => Promise<void> }[] = []
  waitingContract('broken', subject, { describe: (_, define) => define(), test: (title, run) => cases.push({ title, run }), without })
  const failures = new Map<string, string>()
  for (const { title, run } of cases) await run().catch((error: Error) => failures.set(title, error.message))
  return { titles: cases.map(({ title }) => title), failures }
}

/** A fixed window with a fault. */
function broken(spoil: (meter: Meter, whole: Readonly<Meter>) => void): Algorithm {
  const whole = fixedWindow()
  const local: NonNullable<Algorithm['local']> = (...args) => {
    const meter = whole.local?.(...args) as Meter
    const before = new Proxy(meter, { get: (_, name) => Reflect.get(Object.getPrototypeOf(meter), name)?.bind(meter) })
    spoil(meter, before)
    return meter
  }
  return { ...whole, local }
}

const ORDER = 'requests of a key start in the order in which they came'
const LATE = "a request that can't make its timeout, or never fits, fails immediately"

test('the contract finds a meter that never says when capacity returns', async () => {
  const algorithm = broken((meter, whole) => {
    meter.explain = (slot, cost, now) => ({ ...whole.explain(slot, cost, now), retryAfterMs: Number.POSITIVE_INFINITY })
  })
  const { failures } = await failuresOf({ algorithm, coordination: 'local' })
  expect(failures.get(ORDER)).toMatch(/never fits/)
})

test('the contract finds a meter that says too early when capacity returns', async () => {
  const algorithm = broken((meter, whole) => {
    meter.explain = (slot, cost, now) => ({ ...whole.explain(slot, cost, now), retryAfterMs: 1 })
  })
  const { failures } = await failuresOf({ algorithm, coordination: 'local' })
  expect(failures.get(LATE)).toBeDefined()
})

/** A store in memory, in the time of a manual clock. */
function inMemory(): WaitingFixture {
  const clock = manualClock()
  const hub = new Hub(clock)
  return { clock, pass: (milliseconds) => clock.advance(milliseconds), store: () => memoryStore(hub) }
}

test('the contract finds a store that does not come back', async () => {
  const fixture = () => {
    let isAway = false
    const { store, ...rest } = inMemory()
    return {
      ...rest,
      store: () => {
        const whole = (store as () => ReturnType<typeof memoryStore>)()
        const { kind, coordinate } = whole
        return {
          kind,
          coordinate,
          open: (node: Parameters<typeof whole.open>[0]) => {
            const connection = whole.open(node)
            const sync: typeof connection.sync = async (request) => {
              if (isAway) throw new Error('The store is away.')
              return await connection.sync(request)
            }
            return { sync, close: () => connection.close() }
          },
        }
      },
      goAway: async () => {
        isAway = true
        return () => {}
      },
    }
  }
  const { failures } = await failuresOf({ algorithm: fixedWindow(), coordination: 'background', fixture })
  expect([...failures.keys()]).toEqual([
    "no request waits beyond its timeout while the store is down, and requests start again afterwards: failMode 'closed'",
  ])
})

test('cases are left out by their titles, and those that need a store or turns where there are none', async () => {
  const whole = await failuresOf({ algorithm: fixedWindow(), coordination: 'background', fixture: inMemory })
  expect(whole.failures).toEqual(new Map())
  const local = await failuresOf({ algorithm: fixedWindow(), coordination: 'local' }, { [ORDER]: 'a test of its own' })
  expect(whole.titles.filter((title) => !local.titles.includes(title)).map((title) => title.split(' ').slice(0, 3).join(' '))).toEqual([
    'requests of a',
    'processes are served',
    'no request waits',
    'no request waits',
    'no request waits',
  ])
  expect(() =>
    waitingContract('x', { algorithm: fixedWindow(), coordination: 'local' }, { describe, test, without: { typo: '' } }),
  ).toThrow('The waiting contract has no case "typo".')
})
