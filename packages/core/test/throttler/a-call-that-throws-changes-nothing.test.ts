import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import type { Policy, PolicyOptions } from '../../src/decide/policy.ts'
import { createGuard } from '../../src/http/guard.ts'
import { paths } from '../../src/http/request/paths.ts'
import { snapshot } from '../../src/inspect/index.ts'
import type { EventName } from '../../src/report/events.ts'
import { coordinate } from '../../src/sync/coordinator.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import type { Store } from '../../src/throttler/coordinator.ts'
import { namesAt } from '../../src/throttler/names.ts'
import { Throttler } from '../../src/throttler/throttler.ts'
import { fakeReader } from '../http/fake-request.ts'
import { withForm } from '../support/forms.ts'
import { offer, seeded, warnings } from '../support/nodes.ts'
import { TestStore } from '../support/stores.ts'
import { World } from '../support/world.ts'

type Rule = PolicyOptions<never>
type Options = Record<string, unknown>

/** An algorithm of the application that can't make its meter. */
const FAILING = withForm(
  {
    ...fixedWindow(),
    id: 'failing',
    local: () => {
      throw new Error('No meter.')
    },
  },
  'background',
  () => {
    throw new Error('No meter.')
  },
)
const KEYS = ['a', 'b']
const NAMES = ['one', 'two', 'three']
/** Leaves out `unblocked`, because the queue listens to it as soon as its code is loaded. */
const EVENTS: readonly EventName[] = ['blocked', 'warning', 'rejections', 'storeDown']

const rule: fc.Arbitrary<Options> = fc.record({
  name: fc.constantFrom(...NAMES),
  limit: fc.constantFrom(5, 10),
  interval: fc.constantFrom<unknown>(10_000, '10s', '1m'),
  cooldown: fc.constantFrom<unknown>(0, '2s'),
  coordination: fc.constantFrom('background', 'local'),
  algorithm: fc.constantFrom(fixedWindow(), slidingWindow(), tokenBucket()),
  key: fc.constantFrom<unknown>('ip', 'route', 'all', { header: 'X-Key' }, ['ip', 'route']),
  match: fc.constantFrom<unknown>(undefined, paths('POST /x')),
})

/** Options that make a rule unusable. */
const spoilt: fc.Arbitrary<Options> = fc.constantFrom<Options[]>(
  { match: 'POST /x' },
  { match: null },
  { match: ['/x'] },
  { match: {} },
  { key: 5 },
  { key: [] },
  { key: null },
  { key: { header: 'a b' } },
  { key: ['ip', {}] },
  { limit: 0 },
  { limit: '5' },
  { interval: '60' },
  { interval: undefined },
  { cooldown: -1 },
  { spans: 1 },
  { name: '' },
  { cost: 99 },
  { cost: Number.NaN },
  { algorithm: fixedWindow },
  { algorithm: FAILING },
  { coordination: 'nowhere' },
  { failMode: 'perhaps' },
  { storeTimeout: '1s' },
  { delay: {} },
  { dryRun: 'yes' },
  { colour: 'red' },
  { fallbackLimit: 5 },
  { plans: { free: 1 } },
)

const rules = fc.uniqueArray(rule, { selector: ({ name }) => name, minLength: 1, maxLength: 2 })
const anyRules = fc.oneof(
  { weight: 2, arbitrary: rules },
  { weight: 2, arbitrary: fc.tuple(rules, spoilt).map(([list, bad]) => [...list.slice(0, -1), { ...list.at(-1), ...bad }]) },
  { weight: 1, arbitrary: rules.map((list) => [...list, list[0]]) },
  { weight: 1, arbitrary: fc.constantFrom<unknown[]>([], undefined, 'rules', [null], {}) },
) as fc.Arbitrary<readonly Options[]>
const limits = fc.constantFrom<unknown>(
  undefined,
  [],
  [{ policy: 'one', key: 'a', limit: 3 }],
  [{ policy: 'nobody', key: 'a', limit: 3 }],
  [{ policy: 'one', key: 5, limit: 3 }],
  [{ policy: 'one', key: 'a', limit: 0.5 }],
)
const settings = fc.constantFrom<Options>(
  {},
  { maxKeys: 0 },
  { heartbeat: '1 year' },
  { closeTimeout: '-1s' },
  { logger: {} },
  { queue: { maxWait: 'long' } },
  { clock: {} },
  { colour: 'red' },
)
const own = fc.constantFrom<Options>(
  {},
  { headers: 'draft-1' },
  { headers: ['legacy', 'legacy'] },
  { ipv6Subnet: 200 },
  { callbackTimeout: 0 },
  { statusCode: 200 },
  { skip: true },
  { allow: '10.0.0.0/8' },
  { message: 5 },
  { throwOnReject: 'perhaps' },
)
const key = fc.constantFrom<unknown>('a', 'b', 5)
const policy = fc.constantFrom<unknown>(undefined, 'one', 'nobody')
const place = fc.nat({ max: 1 })

/** One call: the name of the method, the throttler, and the arguments. */
const call = fc.oneof(
  fc.tuple(fc.constant('update' as const), place, fc.tuple(anyRules, limits)),
  fc.tuple(fc.constant('update' as const), place, fc.tuple(anyRules, limits)),
  fc.tuple(fc.constant('construct' as const), place, fc.tuple(anyRules, settings)),
  fc.tuple(fc.constant('guard' as const), place, fc.tuple(anyRules, own)),
  fc.tuple(fc.constant('start' as const), place, fc.tuple()),
  fc.tuple(fc.constant('check' as const), place, fc.tuple(key, fc.constantFrom<unknown>(undefined, 1, { limit: 7 }))),
  fc.tuple(fc.constant('peek' as const), place, fc.tuple(key, fc.constantFrom<unknown>(undefined, 1))),
  fc.tuple(fc.constant('reset' as const), place, fc.tuple(key, policy)),
  fc.tuple(fc.constant('block' as const), place, fc.tuple(key, policy, fc.constantFrom<unknown>('1s', '1', 0, undefined))),
  fc.tuple(fc.constant('unblock' as const), place, fc.tuple(key, policy)),
  fc.tuple(fc.constant('refund' as const), place, fc.tuple(fc.constantFrom<unknown>(1, -1, 'all'))),
  fc.tuple(fc.constant('charge' as const), place, fc.tuple(fc.constantFrom<unknown>(1, -1, 'all'))),
  fc.tuple(
    fc.constant('acquire' as const),
    place,
    fc.tuple(key, fc.constantFrom<Options>({}, { timeout: 'soon' }, { cost: -1 }, { priority: 'high' }, { colour: 'red' })),
  ),
  fc.tuple(fc.constant('usage' as const), place, fc.tuple(key, policy, fc.constantFrom<unknown>(undefined, 'soon'))),
  fc.tuple(fc.constant('close' as const), place, fc.tuple()),
)

interface Shop {
  readonly world: World
  readonly store: Store
  readonly made: Throttler[]
  readonly decisions: Decision[]
  /** Other throttlers that might use the store too. */
  readonly probes: readonly Throttler[]
  make(policies: unknown, options?: object): Throttler
}

function shop(): Shop {
  const world = new World()
  const inner = new TestStore(world)
  const clock = world.clock()
  const store: Store = { kind: 'test', decides: inner.decides, coordinate, open: (node) => inner.open(node) }
  const made: Throttler[] = []
  let seed = 0
  const make = (policies: unknown, options: object = {}) =>
    new Throttler({ policies: policies as readonly PolicyOptions[], store, clock, random: seeded(++seed), ...options })
  const probes = NAMES.flatMap((name) =>
    [5, 10].map((limit) => new Throttler({ policies: [{ name, limit, interval: 10_000, key: 'ip' }], clock })),
  )
  return { world, store, made, decisions: [], probes, make }
}

const numbers = new WeakMap<object, number>()
let last = 0

/** Numbers objects, because comparing their contents costs more. */
function numberOf(object: object): number {
  let number = numbers.get(object)
  if (number === undefined) numbers.set(object, (number = ++last))
  return number
}

/** The visible state of a shop. Reading it changes nothing. */
function stateOf({ made, store, probes }: Shop): unknown {
  const names = namesAt(store)
  const clock = made[0] && adapterOf(made[0]).clock
  return {
    throttlers: made.map((throttler) => {
      const { inspected } = adapterOf(throttler)
      const { emitter, limiters, coordinator } = inspected
      // Comes first, because it brings meters to the running interval.
      const decided = ['idle', 'closed'].includes(throttler.state)
        ? []
        : KEYS.map((one) => ({ ...throttler.peek(one), parts: [], policy: undefined }))
      return {
        snapshot: snapshot(throttler),
        limiters: limiters.map((limiter) => [...[limiter, limiter.meter, limiter.policy].map(numberOf), limiter.meter.rollAt]),
        policies: numberOf(throttler.policies),
        rules: numberOf(adapterOf(throttler).rules),
        version: adapterOf(throttler).version,
        state: throttler.state,
        nodeId: throttler.nodeId,
        waiting: throttler.waiting,
        waits: adapterOf(throttler).waits,
        heard: EVENTS.map((event) => emitter.heard(event)),
        coordinator: coordinator && [coordinator, ...coordinator.throttlers].map(numberOf),
        decided,
      }
    }),
    timers: (clock as { outstanding?: number } | undefined)?.outstanding,
    sharing: names.sharing,
    // The rules that another throttler could have, and the coordinator that would serve it.
    claims: probes.map((probe) => {
      const { policies } = probe as { policies: readonly Policy[] }
      const shared = policies.map((one) => ({ ...one, coordination: 'background' as const, id: one.id.replace(':local:', ':background:') }))
      const code = codeOf(() => names.claim(adapterOf(probe).inspected, adapterOf(probe).rules as readonly Rule[], shared))
      names.release(adapterOf(probe).inspected)
      const options = {
        clock: clock as never,
        random: seeded(9),
        heartbeat: 1_000,
        throttler: adapterOf(probe).inspected as never,
        policies: shared,
      }
      const coordinators = made.map((one) => adapterOf(one).inspected.coordinator)
      return [code, coordinators.indexOf(coordinate.call(store, options) as never)]
    }),
  }
}

function codeOf(act: () => void): string | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    return (error as { code?: string }).code
  }
}

/** Waits for a promise. Time passes only if the promise does not settle without it. */
async function settled<T>(world: World, promise: Promise<T>): Promise<T> {
  let done = false
  promise.then(
    () => (done = true),
    () => (done = true),
  )
  for (let turn = 0; !done; turn++) {
    await new Promise((resolve) => setImmediate(resolve))
    await (turn < 20 ? world.settle() : world.run(100))
  }
  return promise
}

type Call = typeof call extends fc.Arbitrary<infer T> ? T : never

async function run(scene: Shop, [name, at, given]: Call): Promise<boolean> {
  const { made, decisions, make, world } = scene
  const throttler = made[at % made.length] as Throttler
  const [first, second, third] = given as readonly unknown[]
  const before = stateOf(scene)
  const options = { policy: second as string }
  try {
    if (name === 'update') throttler.update(first as PolicyOptions[], second as never)
    else if (name === 'construct') {
      const another = make(first, second as object)
      if (made.length < 2) made.push(another)
      else await settled(world, another.close())
    } else if (name === 'guard') {
      const { clock } = adapterOf(throttler)
      const guard = createGuard(
        { policies: first, store: scene.store, clock, random: seeded(7), ...(second as object) } as never,
        fakeReader,
      )
      if (made.length < 2) made.push(guard.throttler as Throttler)
      else await settled(world, guard.throttler.close())
    } else if (name === 'start') throttler.start()
    else if (name === 'check') decisions.push(throttler.check(first as string, second as number))
    else if (name === 'peek') throttler.peek(first as string, second as number)
    else if (name === 'reset') throttler.reset(first as string, options)
    else if (name === 'block') throttler.block(first as string, third as number, options)
    else if (name === 'unblock') throttler.unblock(first as string, options)
    else if (name === 'refund') throttler.refund(decisions.at(-1) as Decision, first as number)
    else if (name === 'charge') throttler.charge(decisions.at(-1) as Decision, first as number)
    else if (name === 'acquire') await settled(world, throttler.acquire(first as string, second as never))
    else if (name === 'usage') await settled(world, throttler.usage(first as string, { ...options, timeout: third as number }))
    else await settled(world, throttler.close())
    return true
  } catch (error) {
    // The reason is not one of the options: the request is rejected, and the rejection counts.
    if (name === 'acquire' && (error as { code?: string }).code === 'WEIR_NOT_ACQUIRED') return true
    expect(stateOf(scene), `${name}(${fc.stringify(given)}) threw ${String(error)}`).toEqual(before)
    return false
  }
}

// Loads the code of `acquire` first, because it loads in real time, which `settled` would take for a wait.
beforeAll(() => import('../../src/throttler/open-queues.ts'))

test('after any call that throws the state is what it was before', async () => {
  warnings()
  let thrown = 0
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 4, maxLength: 14 }), async (calls) => {
      const scene = shop()
      scene.made.push(scene.make([{ name: 'one', limit: 5, interval: '10s', key: 'ip' }]))
      for (const one of calls) {
        const [name] = one
        if ((name === 'refund' || name === 'charge') && scene.decisions.length === 0) continue
        if (name === 'acquire' && scene.made.some(({ state }) => state === 'idle')) continue
        if (!(await run(scene, one))) thrown++
        await scene.world.run(40)
      }
    }),
    { numRuns: 120 },
  )
  // Makes sure that the test really had calls that throw.
  expect(thrown).toBeGreaterThan(300)
})

test('after an update that is rejected for a name of another throttler two throttlers with one rule are counted as two nodes', async () => {
  const { world, make } = shop()
  make([{ name: 'one', limit: 20, interval: '1m' }]).start()
  const second = make([{ name: 'two', limit: 20, interval: '1m' }]).start()
  expect(codeOf(() => second.update([{ name: 'one', limit: 20, interval: '1h' }]))).toBe('WEIR_DUPLICATE_POLICY')
  const third = make([{ name: 'two', limit: 20, interval: '1m' }]).start()
  await world.run(100)
  expect([offer(second, 'a', 10), offer(third, 'a', 10)]).toEqual([10, 10])
  await world.run(20_000)
  expect([offer(second, 'a', 20), offer(third, 'a', 20)]).toEqual([0, 0])
})

test('a throttler whose algorithm fails leaves its names to others, and one whose algorithm fails later has not started', () => {
  const { make, store } = shop()
  expect(() =>
    make([
      { name: 'one', limit: 10, interval: '10s' },
      { name: 'two', limit: 10, interval: '10s', algorithm: FAILING },
    ]),
  ).toThrow('No meter.')
  expect(namesAt(store).sharing).toBe(false)
  make([{ name: 'one', limit: 20, interval: '10s' }])

  let fails = true
  const algorithm: Algorithm = {
    ...fixedWindow(),
    id: 'starts-later',
    local: (site, exchange) => {
      const meter = (fixedWindow().local as NonNullable<Algorithm['local']>)(site, exchange)
      const roll = meter.roll.bind(meter)
      meter.roll = (now) => {
        if (fails) throw new Error('No start.')
        roll(now)
      }
      return meter
    },
  }
  const local = { limit: 10, interval: '10s', coordination: 'local' } as const
  const throttler = make([
    { ...local, name: 'three' },
    { ...local, name: 'four', algorithm },
  ])
  expect(() => throttler.start()).toThrow('No start.')
  expect(throttler.state).toBe('idle')
  expect(() => throttler.check('a')).toThrow('No start.')
  expect(throttler.state).toBe('idle')
  fails = false
  expect(throttler.check('a').allowed).toBe(true)
  expect(throttler.state).not.toBe('idle')
})
