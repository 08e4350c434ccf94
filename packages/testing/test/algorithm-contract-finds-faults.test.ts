import { type Algorithm, fixedWindow, type Meter, type MeterSite, type Step } from '@weir/core'
import { describe, expect, test } from 'vitest'
import { type AlgorithmUnderTest, algorithmContract } from '../src/index.ts'
import { FirstRequestModel, FixedWindowModel } from './models.ts'

/** The inside of a local meter, with its protected members, so that a test can break it. */
interface Inside extends Meter {
  readonly site: MeterSite
  hasCapacity(slot: number, cost: number, limit: number, now: number): boolean
  countIfAllowed(slot: number, cost: number, limit: number, now: number): boolean
  idle(slot: number, now: number): boolean
  unused(slot: number, now: number): boolean
  wait(slot: number, cost: number, limit: number, now: number): number
}

/** A fixed window with a fault. */
function broken(spoil: (meter: Inside, whole: Readonly<Inside>) => void): Algorithm {
  const whole = fixedWindow()
  const local: NonNullable<Algorithm['local']> = (...args) => {
    const meter = whole.local?.(...args) as Inside
    // The meter decides by the methods that a test breaks, as the meters of other algorithms do.
    const { take, fits, fullBy, mark, untake } = Object.getPrototypeOf(Object.getPrototypeOf(meter)) as Meter
    Object.assign(meter, { take, fits, fullBy, mark, untake })
    // The meter's behaviour without the fault.
    const before = new Proxy(meter, { get: (_, name) => Reflect.get(Object.getPrototypeOf(meter), name)?.bind(meter) })
    spoil(meter, before)
    return meter
  }
  return { ...whole, local }
}

/** Runs the contract without a test runner. Returns the message of each case that failed. */
async function failuresOf(
  algorithm: Algorithm,
  model: AlgorithmUnderTest['model'] = (interval) => new FixedWindowModel(interval),
): Promise<Map<string, string>> {
  const cases: { readonly title: string; readonly run: () => Promise<void> }[] = []
  algorithmContract(
    'broken',
    { algorithm, model },
    { describe: (_, define) => define(), test: (title, run) => cases.push({ title, run }), runs: 20, seed: 1 },
  )
  const failures = new Map<string, string>()
  for (const { title, run } of cases) await run().catch((error: Error) => failures.set(title, error.message))
  return failures
}

describe('the algorithm contract finds a meter that', () => {
  test.each<[fault: string, title: string, spoil: Parameters<typeof broken>[0]]>([
    [
      'allows more than the limit',
      'it allows what its definition allows, for each key by itself',
      (meter, whole) => {
        meter.countIfAllowed = (slot, cost, limit, now) => whole.countIfAllowed(slot, cost, 1.2 * limit, now)
      },
    ],
    [
      'tells too short a retryAfterMs',
      'a rejected request is allowed after exactly retryAfterMs, if no other comes before it',
      (meter, whole) => {
        meter.wait = (slot, cost, limit, now) => whole.wait(slot, cost, limit, now) - 1
      },
    ],
    [
      'tells too long a retryAfterMs',
      'a rejected request is allowed after exactly retryAfterMs, if no other comes before it',
      (meter, whole) => {
        meter.wait = (slot, cost, limit, now) => whole.wait(slot, cost, limit, now) + 3
      },
    ],
    [
      'says that more remains than there is',
      'what remains fits, and no more',
      (meter, whole) => {
        meter.remaining = (slot, now) => whole.remaining(slot, now) + 0.01
      },
    ],
    [
      'says that units come back sooner than they do',
      'all units are back after exactly resetAfterMs, allowed or not, if no other request comes',
      (meter, whole) => {
        meter.resetAfterMs = (slot, now) => Math.max(0, whole.resetAfterMs(slot, now) - 2)
      },
    ],
    [
      'takes nothing back',
      'units that are given back are free at once',
      (meter) => {
        meter.refund = () => {}
      },
    ],
    [
      'counts no charge that does not fit',
      'a charge counts, whether or not it fits',
      (meter, whole) => {
        meter.add = (slot, cost, now) => {
          if (whole.allows(slot, cost, now)) whole.add(slot, cost, now)
        }
      },
    ],
    [
      'counts who only looks',
      'a look changes nothing',
      (meter, whole) => {
        meter.hasCapacity = (slot, cost, limit, now) => {
          const allowed = whole.hasCapacity(slot, cost, limit, now)
          if (allowed) whole.add(slot, 0.01, now)
          return allowed
        }
      },
    ],
    [
      'keeps what another policy rejected',
      'a request that another policy rejects leaves no trace',
      (meter) => {
        meter.untake = () => {}
      },
    ],
    [
      'forgets keys in use',
      'a key is forgotten when that changes no decision, and not before',
      (meter) => {
        meter.idle = () => true
        meter.unused = () => true
      },
    ],
    [
      'forgets no key',
      'a key is forgotten when that changes no decision, and not before',
      (meter) => {
        meter.idle = () => false
      },
    ],
    [
      'begins anew when the limit changes',
      'another limit keeps what was counted',
      (meter, whole) => {
        meter.adopt = (now) => {
          whole.adopt(now)
          meter.site.table.fields.fill(0)
        }
      },
    ],
    [
      'is broken by a charge beyond all numbers',
      'whatever it is given, what it tells is possible, and a reset key is as new',
      (meter, whole) => {
        meter.remaining = (slot, now) => (whole.usedOf(slot, now) >= 1e9 ? Number.NaN : whole.remaining(slot, now))
      },
    ],
    [
      "compares each request with its policy's limit",
      'a limit that is given with a request is compared with what was used',
      (meter, whole) => {
        meter.hasCapacity = (slot, cost, _limit, now) => whole.hasCapacity(slot, cost, meter.site.policy.limit, now)
      },
    ],
    [
      'saves up what a sleeping process did not use',
      'after a long sleep of the process a key has all that a new one has, and no more',
      (meter, whole) => {
        let last = 0
        meter.hasCapacity = (slot, cost, limit, now) => {
          const slept = now - last > 15 * meter.site.policy.interval
          if (!slept) last = now
          return whole.hasCapacity(slot, cost, slept ? 2 * limit : limit, now)
        }
      },
    ],
  ])('%s', async (_, title, spoil) => {
    const failures = await failuresOf(broken(spoil))
    expect([...failures.keys()]).toContain(title)
    expect(failures.get(title)).toMatch(/FC_SEED=1, limit [\d.]+, interval \d+: /)
  })

  test('has no fault: it finds none', async () => {
    expect([...(await failuresOf(broken(() => {})))]).toEqual([])
  })
})

describe('the algorithm contract finds a step that', () => {
  const whole = fixedWindow({ start: 'first-request' })
  const step = whole.step as Step
  const DECIDES = 'its step decides as its meter does'
  test.each<[fault: string, title: string, spoilt: Partial<Step>]>([
    [
      'allows more than the limit',
      DECIDES,
      { take: (state, now, cost, limit, ...rest) => step.take(state, now, cost, 1.2 * limit, ...rest) },
    ],
    ['counts who only looks', DECIDES, { take: (state, now, cost, ...rest) => step.take(state, now, Math.max(cost, 0.01), ...rest) }],
    ['takes nothing back', DECIDES, { giveBack: () => {} }],
    ['counts no charge', DECIDES, { add: () => {} }],
    ['tells too short a retryAfterMs', DECIDES, { take: (...args) => ({ ...step.take(...args), retryAfterMs: 0 }) }],
    ['tells a delay', DECIDES, { take: (...args) => ({ ...step.take(...args), delayMs: 5 }) }],
    [
      'is forgotten too soon',
      'its step forgets a key when that changes no decision',
      { lifetime: (...args) => step.lifetime(...args) / 2 },
    ],
  ])('%s', async (_, title, spoilt) => {
    const failures = await failuresOf({ ...whole, step: { ...step, ...spoilt } }, (interval) => new FirstRequestModel(interval))
    expect([...failures.keys()]).toContain(title)
  })
})
