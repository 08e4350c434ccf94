import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { POLICY_OPTIONS } from '../../src/decide/check-policy.ts'
import { algorithms as builtIn, tokenBucket } from '../../src/index.ts'
import { checkRules, RulesError } from '../../src/rules/index.ts'
import { thrownBy } from '../support/nodes.ts'

const schema = JSON.parse(readFileSync(new URL('../../rules.schema.json', import.meta.url), 'utf8'))
const bySchema = new Ajv({ strict: true, allowUnionTypes: true, strictRequired: false }).compile(schema)
const algorithms = { ...builtIn, own: tokenBucket }
const named = {
  algorithms,
  keys: { tenant: () => 'x' },
  matches: { outside: () => true },
  costs: { bytes: () => 1 },
  limits: { contract: () => 1 },
  plans: { planOf: () => 'free' },
  delays: { slower: () => 1 },
}

function byChecks(value: unknown): string | undefined {
  try {
    checkRules({ value }, named)
    return undefined
  } catch (error) {
    if (!(error instanceof RulesError)) throw error
    return error.message
  }
}

/** Right and wrong values of each option. */
const values: Readonly<Record<string, readonly unknown[]>> = {
  name: ['a', 'a b', '', 'ä', 5, 'x'.repeat(65)],
  limit: [1, 100, 0, 2 ** 53, 'contract', '5s', null, 1.5],
  fallbackLimit: [1, 0, 'x'],
  interval: [
    '1m',
    60_000,
    '60',
    '-1s',
    -5,
    { calendar: 'month' },
    { calendar: 'week', startsOn: 'sunday' },
    { calendar: 'day', startsOn: 'monday' },
    {},
    [],
  ],
  spans: [2, 10, 1, 2.5, '6'],
  cooldown: [0, '1m', '-1m', { base: '1s', max: '1m' }, { base: '1s', max: '1m', factor: 1 }, { base: '1s' }],
  algorithm: [
    'fixedWindow',
    'tokenBucket',
    'own',
    '9',
    5,
    { name: 'own', burst: 3 },
    { name: 'slidingWindow', buckets: 5 },
    { name: 'slidingWindow', buckets: 6 },
    { name: 'tokenBucket', burst: 2, earlyDrop: true },
    { name: 'tokenBucket', size: 2 },
    { name: 'concurrency', maxDuration: '5s' },
    { name: 'concurrency', releaseOn: 'response' },
    { name: 'concurrency', releaseOn: 'connection' },
    { burst: 3 },
    { name: 'leakyBucket', immediate: -1 },
    { name: 'tokenBucket', warmUp: { duration: '5s', coldFactor: 1 } },
  ],
  coordination: ['local', 'background', 'periodic', 'central', 'leased', 'remote', null],
  failMode: ['share', 'open', 'closed', 'half', true],
  storeTimeout: ['5ms', 20, 'soon'],
  maxReservation: [1, 10, 0, 1.5, '5'],
  key: ['ip', 'tenant', '', 'a b', { header: 'x-key' }, { header: 'x key' }, ['ip', { header: 'a' }], [], 7, { headers: 'x' }],
  match: ['outside', '/a', ['POST /a', '/b'], [], 'a b', 5],
  cost: [1, 0.5, 0, -1, 'bytes', '1'],
  delay: ['5s', 5, 'slower', -1],
  dryRun: [true, false, 'yes', 'next'],
  plans: [{ free: 1 }, { free: { limit: 2, interval: '1s' } }, {}, { free: 0 }, { free: { interval: '1s' } }, 5],
  plan: ['planOf', 5, '/'],
}

const policies = fc.record(Object.fromEntries(Object.entries(values).map(([option, some]) => [option, fc.constantFrom(...some)])), {
  requiredKeys: [],
})
const overrides = fc.record(
  {
    policy: fc.constantFrom<unknown>('default', 'a', 5),
    key: fc.constantFrom<unknown>('k', '', 'x'.repeat(1001), 5),
    limit: fc.constantFrom<unknown>(0, 0.5, 1, 5, -1, '5'),
    until: fc.constantFrom<unknown>('2026-12-24T00:00:00Z', '2026-12-24T00:00+01:00', '2026-12-24', 5),
  },
  { requiredKeys: [] },
)
const members = fc.record({
  version: fc.constantFrom<unknown>(1, 7, 0, 1.5, '7'),
  change: fc.constantFrom<unknown>({ by: 'a' }, { at: '2026-01-01T00:00Z' }, { at: 'now' }, { by: '' }, 5, { what: 'x' }),
  overrides: fc.array(overrides, { maxLength: 2 }),
  next: fc.constantFrom<unknown>({ policies: [{ key: 'ip', limit: 1, interval: '1s' }] }, { policies: [] }, {}, 5),
  strange: fc.constant(1),
})
/** An object with at most `most` of the members of another one. */
const someOf = (members: fc.Arbitrary<Readonly<Record<string, unknown>>>, most: number) =>
  members.chain((all) =>
    fc.subarray(Object.keys(all), { maxLength: most }).map((kept) => Object.fromEntries(kept.map((name) => [name, all[name]]))),
  )
/** A valid document with a few changed members, because random documents are hardly ever valid. */
const documents = fc
  .oneof(
    someOf(members, 2).map((document) => ({ document, policy: {} })),
    someOf(policies, 3).map((policy) => ({ document: {}, policy })),
  )
  .map(({ document, policy }) => ({ version: 1, policies: [{ key: 'ip', limit: 10, interval: '1m', ...policy }], ...document }))

describe('the schema for editors', () => {
  test('accepts whatever the checks accept', () => {
    let accepted = 0
    fc.assert(
      fc.property(documents, (document) => {
        if (byChecks(document) !== undefined) return
        accepted++
        expect(bySchema(document), JSON.stringify(bySchema.errors)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
    expect(accepted).toBeGreaterThan(300)
  })

  test('rejects each wrong value that the checks reject by itself', () => {
    /** Problems that need more than one value, or the application. */
    const meaning =
      /needs a "store"|too short|Remove|without|is missing|"background"|at most the limit|the size of|which is not in|IANA|Use either|to \d+ ms|in the background|from \d+ ms|can't count without/
    for (const [option, some] of Object.entries(values)) {
      for (const value of some) {
        const policy = { key: 'ip', limit: 10, interval: '1m', [option]: value }
        const document = { version: 1, policies: [policy] }
        const problem = byChecks(document)
        if (problem !== undefined && meaning.test(problem)) continue
        expect(bySchema(document), `${JSON.stringify(policy)}: ${problem}`).toBe(problem === undefined)
      }
    }
  })

  test('knows every option of a policy, and every algorithm with its options', () => {
    const { definitions } = schema
    expect(Object.keys(definitions.policy.properties).sort()).toEqual(
      [...POLICY_OPTIONS, 'plans', 'plan'].filter((option) => option !== 'candidate').sort(),
    )
    for (const [name, make] of Object.entries(builtIn)) {
      const options = / has: ([^.]*)\./.exec(thrownBy(() => make({ '?': 1 } as never)).message)?.[1]?.split(', ') ?? []
      expect(Object.keys(definitions[name].properties)).toEqual(['name', ...options])
    }
    expect(Object.keys(values).sort()).toEqual(Object.keys(definitions.policy.properties).sort())
  })
})
