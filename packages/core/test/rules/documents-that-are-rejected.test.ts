import { describe, expect, test } from 'vitest'
import * as yaml from 'yaml'
import { tokenBucket } from '../../src/index.ts'
import { checkRules, parseRules, RulesError, type YamlLibrary } from '../../src/rules/index.ts'
import { thrownBy } from '../support/nodes.ts'

function rejected(text: string, options: { yaml?: YamlLibrary; store?: boolean } = { yaml }): RulesError {
  const error = thrownBy(() =>
    checkRules(parseRules(text, options), {
      algorithms: { tokenBucket },
      keys: { tenant: () => 'x' },
      ...options,
      yaml: undefined,
    } as never),
  )
  expect(error).toBeInstanceOf(RulesError)
  expect((error as RulesError).code).toBe('WEIR_RULES_REJECTED')
  return error as RulesError
}

const GOOD = { name: 'a', limit: 10, interval: '1m', key: 'ip' }
const of = (policy: object, more: object = {}) =>
  JSON.stringify({ version: 7, policies: [GOOD, { ...GOOD, name: 'b', ...policy }], ...more }, undefined, 1)

describe('a document that can not be used is rejected with the place and what is allowed', () => {
  test.each<[string, string, string, string]>([
    ['a limit of zero', of({ limit: 0 }), 'policies[1].limit', 'a number of at least 1, or the name of a function.'],
    [
      'a limit without a function',
      of({ limit: 'contract', fallbackLimit: 1 }),
      'policies[1].limit',
      'which is not in "limits". Pass it to follow(), in "limits".',
    ],
    ['no limit', of({ limit: undefined }), 'policies[1].limit', 'is missing'],
    ['no key', of({ key: undefined }), 'policies[1].key', 'is missing. Choose what requests are counted by'],
    ['no key of rules to come', of({}, { next: { policies: [{ ...GOOD, key: undefined }] } }), 'next.policies[0].key', 'is missing'],
    ['an interval that is no duration', of({ interval: '60' }), 'policies[1].interval', 'which has no unit. Use "60s"'],
    ['a calendar that does not exist', of({ interval: { calendar: 'year' } }), 'policies[1].interval', '"day", "week" or "month"'],
    ['a time zone that does not exist', of({ interval: { calendar: 'day', timeZone: 'Moon' } }), 'policies[1].interval.timeZone', 'IANA'],
    ['an unknown option', of({ limt: 5 }), 'policies[1].limt', 'Did you mean "limit"?'],
    [
      'an algorithm that is not there',
      of({ algorithm: 'slidingWindow' }),
      'policies[1].algorithm',
      'Use "fixedWindow" or "tokenBucket", or pass it to follow(), in "algorithms".',
    ],
    ['an algorithm named badly', of({ algorithm: { name: 'tokenBuckett' } }), 'policies[1].algorithm.name', 'Did you mean "tokenBucket"?'],
    [
      'an option of an algorithm',
      of({ algorithm: { name: 'tokenBucket', burts: 5 } }),
      'policies[1].algorithm.burts',
      'Did you mean "burst"?',
    ],
    ['a burst of zero', of({ algorithm: { name: 'tokenBucket', burst: 0 } }), 'policies[1].algorithm.burst', 'a number from 1'],
    ['an algorithm that is a number', of({ algorithm: 5 }), 'policies[1].algorithm', 'the name of an algorithm'],
    [
      'a pair that does not go',
      of({ algorithm: 'tokenBucket', coordination: 'periodic' }),
      'policies[1].coordination',
      'tokenBucket() supports',
    ],
    ['a key that has no function', of({ key: 'tenants' }), 'policies[1].key', 'Did you mean "tenant"?'],
    ['a built-in key with a slip', of({ key: 'rout' }), 'policies[1].key', 'Did you mean "route"?'],
    ['a key that is a number', of({ key: 5 }), 'policies[1].key', 'header("name")'],
    ['a path that can not be compiled', of({ match: ['/a/:'] }), 'policies[1].match', '/a/:'],
    ['a cooldown that shrinks', of({ cooldown: { base: '1m', max: '1s' } }), 'policies[1].cooldown.max', 'from 60000 ms'],
    ['a cooldown given as core keeps it', of({ cooldown: { first: 5, growth: {} } }), 'policies[1].cooldown.first', 'Unknown option'],
    ['two policies of one name', of({ name: 'a' }), 'policies[1].name', 'Two policies are named "a"'],
    [
      'plans without a function',
      of({ limit: undefined, plans: { free: 1 }, plan: 'planOf' }),
      'policies[1].plan',
      'which is not in "plans"',
    ],
    ['a plan without a limit', of({ limit: undefined, plans: { free: { interval: '1s' } }, plan: 'x' }), 'policies[1].plan', '"plans"'],
    ['a policy that is none', of({}, { policies: [5] }), 'policies[0]', 'an object such as'],
    ['no policies', of({}, { policies: [] }), 'policies', '1 to 100'],
    ['a version that is none', of({}, { version: '7' }), 'version', 'a whole number from 1'],
    ['an unknown member', of({}, { policy: [] }), 'policy', 'A document has'],
    ['a change without a time', of({}, { change: { at: 'yesterday' } }), 'change.at', 'a time such as'],
    ['an override of nothing', of({}, { overrides: [{ policy: 'c', key: 'k', limit: 1 }] }), 'overrides[0].policy', 'Use "a" or "b"'],
    ['a negative override', of({}, { overrides: [{ policy: 'a', key: 'k', limit: -1 }] }), 'overrides[0].limit', 'Use 0, or a number'],
    [
      'an override without a zone',
      of({}, { overrides: [{ policy: 'a', key: 'k', limit: 1, until: '2026-01-01T00:00' }] }),
      'overrides[0].until',
      'a time such as',
    ],
    [
      'a day that does not exist',
      of({}, { overrides: [{ policy: 'a', key: 'k', limit: 1, until: '2026-13-01T00:00Z' }] }),
      'overrides[0].until',
      'a time such as',
    ],
    [
      'two overrides of a key',
      of({}, { overrides: [1, 2].map((limit) => ({ policy: 'a', key: 'k', limit })) }),
      'overrides[1]',
      'two overrides',
    ],
    ['a policy to come among those that hold', of({ candidate: true }), 'policies[1].candidate', 'belong in "next" of the document'],
    [
      'rules to come that are bad',
      of({}, { next: { policies: [{ ...GOOD, limit: 0 }] } }),
      'next.policies[0].limit',
      'a number of at least 1',
    ],
    ['rules to come with a version', of({}, { next: { version: 8, policies: [GOOD] } }), 'next.version', 'Rules to come has'],
    ['an object of another kind', '[]', '', 'an object such as'],
  ])('%s', (_, text, path, message) => {
    for (const form of [text, yaml.stringify(JSON.parse(text))]) {
      const [problem, ...others] = rejected(form).problems
      expect(others).toEqual([])
      expect(problem?.path).toBe(path)
      expect(problem?.message).toContain(message)
      // The line contains the last name of the path, unless the member is missing or an entry of a list.
      const last = /\w+$/.exec(path)?.[0]
      const line = form.split('\n')[(problem?.line ?? 0) - 1]
      expect(line).toBeDefined()
      if (last !== undefined && form.includes(`${last}`) && !message.includes('is missing'))
        expect(`${form.split('\n')[(problem?.line ?? 0) - 2]}\n${line}`).toContain(last)
    }
  })

  test('all problems are told at once, ten at most', () => {
    const policies = Array.from({ length: 20 }, (_, i) => ({ name: `p${i}`, limit: i < 15 ? 0 : 1, interval: '1m', key: 'ip' }))
    const error = rejected(JSON.stringify({ version: 3, policies }))
    expect(error.problems.map(({ path }) => path)).toEqual(Array.from({ length: 10 }, (_, i) => `policies[${i}].limit`))
    expect(error.message).toMatch(
      /^Rules of version 3 are rejected: policies\[0\]\.limit \(line 1, column 47\): .* \(and 9 more\) See @weir\/core\/docs\/errors\/weir_rules_rejected\.md$/,
    )
  })

  test('without a store nothing can be shared', () => {
    expect(rejected(of({ coordination: 'central' }), { store: false }).problems[0]).toMatchObject({
      path: 'policies[1].coordination',
      line: 15,
    })
  })

  test('a name that every object has is none', () => {
    for (const name of ['constructor', 'toString', '__proto__'])
      expect(rejected(of({ key: name })).problems[0]?.path, name).toBe('policies[1].key')
  })
})

describe('a document of much nonsense is rejected without much work', () => {
  const many = (one: (place: number) => string) => Array.from({ length: 20_000 }, (_, place) => one(place)).join()

  test.each<[string, string, string, string?]>([
    ['plans', 'plans', `{ ${many((i) => `"p${i}": 1`)} }`],
    ['path patterns', 'match', `[${many(() => '"/a"')}]`],
    ['parts of a key', 'key', `[${many(() => '"ip"')}]`, ''],
  ])('%s', (_, option, value, key = '"key": "ip", ') => {
    const [problem, ...others] = rejected(
      `{ "version": 1, "policies": [{ ${key}"interval": "1m", "limit": 1, "${option}": ${value} }] }`,
    ).problems
    expect(problem).toMatchObject({ path: `policies[0].${option}`, message: 'It has 20000 entries. Use at most 1000.' })
    expect(others).toEqual([])
  })
})

describe('a text that is torn', () => {
  const text = of({})
  test('is no JSON wherever it ends, and the end is told', () => {
    for (let end = 0; end < text.length - 1; end++) {
      const [problem] = rejected(text.slice(0, end), {}).problems
      expect(problem?.message).toContain('it is no JSON')
      expect(problem?.line).toBe(text.slice(0, end).split('\n').length)
    }
  })

  test('is told with its line in YAML', () => {
    const [problem] = rejected('version: 7\npolicies:\n  - name: [a\n').problems
    expect(problem).toMatchObject({ line: 4 })
    expect(problem?.message).toContain('it is no YAML')
  })

  test('aliases that would become very much are rejected', () => {
    const levels = Array.from({ length: 12 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]`)
    expect(rejected(`l0: &l0 x\n${levels.join('\n')}\n`).problems[0]?.message).toContain('stand for more than 100000 values')
  })

  test('YAML without its library says what to give', () => {
    expect(rejected('version: 1', {}).message).toContain('pass the option "yaml"')
  })

  test('one that is too long is not read', () => {
    expect(rejected(' '.repeat(8_000_001)).message).toContain('more than 8000000')
  })
})

test('names that could be taken for something else are rejected at construction', () => {
  const check = (named: object) => thrownBy(() => checkRules({ value: { version: 1, policies: [GOOD] } }, named))
  expect(check({ keys: { ip: () => 'x' } })?.message).toContain('keys.ip')
  expect(check({ delays: { '5s': () => 5 } })?.message).toContain('begins with a letter')
  expect(check({ matches: { 'a/b': () => true } })?.message).toContain('begins with a letter')
  expect(check({ costs: { bytes: 5 } })?.message).toContain('a function')
  expect(check({ plans: 5 })?.message).toContain('an object of functions')
})
