import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PlannedPolicyOptions } from '../../src/decide/plans.ts'
import type { AnyPolicyOptions, PolicyOptions } from '../../src/decide/policy.ts'
import { header } from '../../src/decide/request-rule.ts'
import { paths } from '../../src/http/request/paths.ts'
import { memoryStore } from '../../src/hub/index.ts'
import {
  type Algorithm,
  calendar,
  concurrency,
  createThrottler,
  escalating,
  fixedWindow,
  leakyBucket,
  slidingWindow,
  type Throttler,
  tokenBucket,
} from '../../src/index.ts'
import { textOf, toldRules } from '../../src/sync/link/told-rule.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { scene } from '../support/nodes.ts'

const read = (): string => 'x'
const other = (): boolean => true

/** Groups of spellings for each option. Spellings of a group mean the same, and no two groups do. */
const SPELLINGS: Readonly<Record<string, readonly (readonly unknown[])[]>> = {
  name: [[undefined, 'default'], ['Default']],
  limit: [[100, 1e2, 100.0], [101]],
  interval: [
    [60_000, '1m', '60s', '60000ms', '1 minute', '60 secs', '1M'],
    [70, '70ms', '0.07s', '0.07 seconds'],
    [3_600_000, '1h', '60m', '1 hour'],
    [
      calendar('day'),
      calendar('day', { timeZone: 'UTC' }),
      calendar('day', { timeZone: 'utc' }),
      calendar('day', { timeZone: 'Etc/UTC' }),
      calendar('day', { timeZone: 'GMT' }),
    ],
    [calendar('week'), calendar('week', { startsOn: 'monday', timeZone: 'Zulu' })],
    [calendar('week', { startsOn: 'sunday' })],
    [calendar('month', { timeZone: 'Europe/Prague' }), calendar('month', { timeZone: 'europe/PRAGUE' })],
    [calendar('month', { timeZone: 'Asia/Kolkata' }), calendar('month', { timeZone: 'Asia/Calcutta' })],
  ],
  cooldown: [
    [undefined, 0, '0s', '0ms'],
    [2_000, '2s', '2000ms', '2 sec'],
  ],
  algorithm: [[undefined, fixedWindow(), fixedWindow({}), fixedWindow({ start: 'epoch' })]],
  coordination: [[undefined, 'background'], ['periodic']],
  key: [
    ['route', ['route']],
    ['ip', ['ip']],
    ['all', ['all']],
    [header('X-Api-Key'), header('x-api-key'), { header: 'X-API-KEY' }, [{ header: 'x-Api-key' }]],
    [
      ['ip', header('A')],
      ['ip', { header: 'a' }],
    ],
    [[header('A'), 'ip']],
    [read, [read]],
  ],
  match: [
    [undefined],
    [paths('POST /a/:id', '/B'), paths('/b', 'POST /a/:id'), paths('/b', 'POST  /A/:name', '/b')],
    [paths('/a/:id', '/b')],
    [paths('GET /a-b'), paths('HEAD /a%2Db'), paths('GET /%61-b', 'HEAD /A-B')],
    [paths('/a/*rest'), paths('/A/*path')],
    [paths('/a/:rest')],
    [paths('/a{/:id}'), paths('/A{/:key}')],
    [other],
  ],
  // The cost of a request is not part of the rule, because one service may charge more than another.
  cost: [[undefined, 1, 5]],
  failMode: [[undefined, 'share']],
  dryRun: [[undefined, false]],
}

const OPTIONS = Object.keys(SPELLINGS)

interface Choice {
  /** A group for each option, and the spelling of it for each of two rules. */
  readonly groups: readonly number[]
  readonly spelled: readonly (readonly [number, number])[]
  readonly order: readonly number[]
}

const choice: fc.Arbitrary<Choice> = fc.record({
  groups: fc.tuple(...OPTIONS.map((option) => fc.nat({ max: (SPELLINGS[option] as unknown[]).length - 1 }))),
  spelled: fc.tuple(...OPTIONS.map(() => fc.tuple(fc.nat({ max: 9 }), fc.nat({ max: 9 })))),
  order: fc.shuffledSubarray([...OPTIONS.keys()], { minLength: OPTIONS.length }),
})

/** Makes the first or the second rule of a choice, with its options in reverse order for the second. */
function ruleOf({ groups, spelled, order }: Choice, which: 0 | 1): PolicyOptions<never> {
  const entries = order.flatMap((at): [string, unknown][] => {
    const option = OPTIONS[at] as string
    const group = SPELLINGS[option]?.[groups[at] as number] as readonly unknown[]
    const value = group[(spelled[at]?.[which] as number) % group.length]
    return value === undefined ? [] : [[option, value]]
  })
  return Object.fromEntries(which === 0 ? entries : entries.reverse()) as unknown as PolicyOptions<never>
}

function made(rule: AnyPolicyOptions<never> | PlannedPolicyOptions<never>): {
  readonly ids: readonly string[]
  readonly told: readonly string[]
} {
  const throttler = createThrottler({ policies: [rule], store: memoryStore() }) as Throttler
  const told = toldRules(adapterOf(throttler).inspected as never)
  return { ids: throttler.policies.map(({ id }) => id).toSorted(), told: told.map((one) => textOf([one])).toSorted() }
}

test('two spellings of a rule have one id and are told alike', () => {
  fc.assert(
    fc.property(choice, (chosen) => {
      expect(made(ruleOf(chosen, 1))).toEqual(made(ruleOf(chosen, 0)))
    }),
    { numRuns: 1_000 },
  )
})

test('two rules that differ in an option are told differently', () => {
  const different = OPTIONS.filter((option) => (SPELLINGS[option] as unknown[]).length > 1)
  fc.assert(
    fc.property(choice, fc.constantFrom(...different), fc.nat({ max: 9 }), (chosen, option, by) => {
      const at = OPTIONS.indexOf(option)
      const count = (SPELLINGS[option] as unknown[]).length
      const groups = chosen.groups.with(at, ((chosen.groups[at] as number) + 1 + (by % (count - 1))) % count)
      const [first, second] = [made(ruleOf(chosen, 0)), made(ruleOf({ ...chosen, groups }, 0))]
      expect(second.told).not.toEqual(first.told)
      if (['name', 'interval', 'coordination'].includes(option)) expect(second.ids).not.toEqual(first.ids)
      if (['limit', 'cooldown', 'key', 'match'].includes(option)) expect(second.ids).toEqual(first.ids)
    }),
    { numRuns: 1_000 },
  )
})

test.each<[string, AnyPolicyOptions<never> | PlannedPolicyOptions<never>, AnyPolicyOptions<never> | PlannedPolicyOptions<never>]>([
  ['spans by default and stated', { limit: 5, interval: '1m' }, { limit: 5, interval: '1m', spans: 6 }],
  [
    'what a sliding window is by default',
    { limit: 5, interval: '1m', algorithm: slidingWindow() },
    { limit: 5, interval: '60s', algorithm: slidingWindow({ subWindows: 30, reopenAt: 0.1 }) },
  ],
  [
    'a burst by default and stated',
    { limit: 5, interval: '1m', algorithm: tokenBucket() },
    { limit: 5, interval: '1m', algorithm: tokenBucket({ burst: 5 }) },
  ],
  [
    'how a bucket warms up',
    { limit: 5, interval: '1m', coordination: 'central', algorithm: tokenBucket({ warmUp: '0.5s' }) },
    { limit: 5, interval: '1m', coordination: 'central', algorithm: tokenBucket({ warmUp: { coldFactor: 3, duration: 500 } }) },
  ],
  [
    'a storeTimeout in two spellings',
    { limit: 5, interval: '1m', coordination: 'central', storeTimeout: '1s' },
    { limit: 5, interval: '1m', coordination: 'central', storeTimeout: 1_000 },
  ],
  [
    'how long a request in flight is held for a silent node',
    { limit: 5, algorithm: concurrency({ maxDuration: '30s' }), coordination: 'leased' },
    { limit: 5, algorithm: concurrency({ maxDuration: 30_000 }), coordination: 'leased' },
  ],
  [
    'what a leaky bucket holds by default and stated',
    { limit: 5, interval: '1m', algorithm: leakyBucket() },
    { limit: 5, interval: '1m', algorithm: leakyBucket({ burst: 4, immediate: 0 }) },
  ],
  [
    'how a cooldown grows',
    { limit: 5, interval: '1m', cooldown: escalating({ base: '1m', max: '1h' }) },
    { limit: 5, interval: '1m', cooldown: escalating({ max: 3_600_000, factor: 2, base: 60_000, memory: '1h' }) },
  ],
  [
    'plans in another order',
    { key: 'ip', interval: '1m', plan: read, plans: { free: 60, pro: 600, basic: 60 }, match: paths('/a/:id') },
    {
      match: paths('/A/:name'),
      plans: { basic: { interval: '60s', limit: 60 }, pro: 600, free: { limit: 60 } },
      interval: 60_000,
      key: ['ip'],
      plan: read,
    },
  ],
])('%s: one rule', (_, one, two) => {
  expect(made(two)).toEqual(made(one))
})

test.each<[string, Algorithm, Algorithm]>([
  ['burst', tokenBucket({ burst: 5 }), tokenBucket({ burst: 50 })],
  ['maxDebt', tokenBucket(), tokenBucket({ maxDebt: 5 })],
  ['early drop', tokenBucket(), tokenBucket({ earlyDrop: true })],
  ['immediate', leakyBucket(), leakyBucket({ immediate: 2 })],
  ['reopen', slidingWindow(), slidingWindow({ reopenAt: 0.5 })],
])('throttlers of one process have to agree on an option of the algorithm: %s', (_, one, two) => {
  const store = memoryStore()
  const policy = { name: 'api', limit: 10, interval: '1m' } as const
  createThrottler({ policies: [{ ...policy, algorithm: one }], store })
  createThrottler({ policies: [{ ...policy, algorithm: one }], store })
  expect(() => createThrottler({ policies: [{ ...policy, algorithm: two }], store })).toThrow(
    /different rules named "api": options of "algorithm" are/,
  )
})

test('throttlers of one process may let a request cost more at one of them', () => {
  const store = memoryStore()
  const policy = { name: 'api', limit: 10, interval: '1m' } as const
  createThrottler({ policies: [policy], store })
  expect(() => createThrottler({ policies: [{ ...policy, cost: 5 }], store })).not.toThrow()
})

test('of plans that allow the same all nodes take the same one for the smallest', () => {
  const smallest = (limits: Record<string, number>) => {
    const { rules } = adapterOf(createThrottler({ policies: [{ key: 'ip', interval: '1m', plan: read, plans: limits }] }))
    const match: unknown = rules[0]?.match
    return (match as { group: { smallest: string } }).group.smallest
  }
  expect(smallest({ free: 60, pro: 600, basic: 60 })).toBe(smallest({ basic: 60, pro: 600, free: 60 }))
})

test('throttlers of one process agree on a rule that is spelled in two ways, and nodes say nothing of it', async () => {
  const store = memoryStore()
  await fc.assert(
    fc.asyncProperty(choice, async (chosen) => {
      const rules = [ruleOf(chosen, 0), ruleOf(chosen, 1)] as const
      const first = createThrottler({ policies: [rules[0]], store })
      // A different rule of the same name would be rejected here.
      await createThrottler({ policies: [rules[1]], store }).close()
      await first.close()
    }),
    { numRuns: 200 },
  )
  const it = scene()
  const [one, two] = [
    it.node({ limit: 5, interval: '1m', key: { header: 'X-Key' }, match: paths('/a/:id', '/b') }),
    it.node({ match: paths('/B', '/a/:name'), key: [header('x-key')], interval: 60_000, limit: 5, spans: 6 }),
  ]
  const heard: unknown[] = []
  for (const node of [one, two]) {
    node.on('warning', ({ error }) => heard.push(error))
    node.on('peerRuleDiffers', (event) => heard.push(event))
    node.start()
  }
  await it.world.run(40_000)
  expect(heard).toEqual([])
  expect(it.store.requests.some(({ request }) => request.heartbeat?.rules !== undefined)).toBe(true)
  await it.close()
})
