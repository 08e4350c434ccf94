import { describe, expect, test } from 'vitest'
import * as yaml from 'yaml'
import { checkRules, parseRules, RulesError, type RulesProblem } from '../../src/rules/index.ts'
import { thrownBy } from '../support/nodes.ts'

const read = (text: string) => parseRules(text, { yaml })

function problemsOf(text: string): readonly RulesProblem[] {
  const error = thrownBy(() => read(text))
  expect(error).toBeInstanceOf(RulesError)
  return (error as RulesError).problems
}

const twice = (name: string, line: number) => `The key "${name}" appears twice. The first is in line ${line}. Remove one of the two.`

describe('a key that appears twice is rejected, with both lines', () => {
  test.each<[string, string, string, number, number, string]>([
    [
      'JSON, in a policy',
      '{"version": 1, "policies": [{\n "limit": 5,\n "interval": "1m",\n "limit": 50 }]}',
      'policies[0].limit',
      4,
      2,
      'limit',
    ],
    ['JSON, in the document', '{"version": 1,\n "policies": [],\n "version": 2}', 'version', 3, 1, 'version'],
    ['JSON, in the second of a list', '{"overrides": [{"key": "a"},\n {"key": "b",\n "key": "c"}]}', 'overrides[1].key', 3, 2, 'key'],
    ['JSON, after a nested object', '{"limits": {"a": 1, "b": {"a": 1}},\n "limits": {}}', 'limits', 2, 1, 'limits'],
    ['JSON, written with escapes', '{"limit": 1,\n "lim\\u0069t": 2}', 'limit', 2, 1, 'limit'],
    ['JSON, with braces and quotes in texts', '{"a": "}{\\"a\\": [,",\n "b": "\\\\",\n "b": 1}', 'b', 3, 2, 'b'],
    ['JSON, a name that every object has', '{"__proto__": 1,\n "__proto__": 2}', '__proto__', 2, 1, '__proto__'],
    ['YAML, in a policy', 'version: 1\npolicies:\n  - limit: 5\n    interval: 1m\n    limit: 50\n', 'policies[0].limit', 5, 3, 'limit'],
    ['YAML, in the document', 'version: 1\npolicies: []\nversion: 2\n', 'version', 3, 1, 'version'],
    ['YAML, quoted and in a flow map', 'next: { "limit": 5,\n  limit: 50 }\n', 'next.limit', 2, 1, 'limit'],
    ['YAML, a number and the same as text', 'a:\n  1: x\n  "1": y\n', 'a.1', 3, 2, '1'],
    ['YAML, two merge keys', 'a: &a { b: 1 }\nc:\n  <<: *a\n  <<: *a\n', 'c.<<', 4, 3, '<<'],
  ])('%s', (_, text, path, line, first, name) => {
    expect(problemsOf(text)).toEqual([{ path, line, column: expect.any(Number), message: twice(name, first) }])
  })

  test('ten at most are reported', () => {
    const members = Array.from({ length: 30 }, () => '"limit": 1').join(',\n')
    expect(problemsOf(`{${members}}`)).toHaveLength(10)
    expect(problemsOf(`version: 1\nnext: { ${members.replaceAll('\n', '\n ')} }`)).toHaveLength(10)
  })

  test.each([
    '{"a": {"a": {"a": [{"a": 1}, {"a": ["a", "a"]}]}}, "b": {"a": 1}}',
    'a: { a: { a: [{ a: 1 }, { a: [a, a] }] } }\nb: { a: 1 }',
  ])('the same key in other objects is none: %s', (text) => {
    expect(read(text).value).toEqual({ a: { a: { a: [{ a: 1 }, { a: ['a', 'a'] }] } }, b: { a: 1 } })
  })
})

describe('merge keys of YAML', () => {
  test('add the options of other policies, and what is written in the policy goes before', () => {
    const text = `version: 1
policies:
  - &base
    name: a
    limit: 5
    interval: 1m
    key: ip
  - <<: *base
    name: b
    limit: 50
`
    expect(checkRules(read(text)).policies).toMatchObject([
      { name: 'a', limit: 5, interval: '1m', key: 'ip' },
      { name: 'b', limit: 50, interval: '1m', key: 'ip' },
    ])
  })

  test.each<[string, string, unknown]>([
    ['the first of several goes before the others', 'b: { <<: [{ x: 1 }, { x: 2, y: 2 }] }', { b: { x: 1, y: 2 } }],
    [
      'what is merged may merge itself',
      'a: &a { x: 1 }\nb: &b { <<: *a, y: 1 }\nc: { <<: *b }',
      { a: { x: 1 }, b: { x: 1, y: 1 }, c: { x: 1, y: 1 } },
    ],
    ['wherever it stands', 'b: { x: 1, <<: { x: 2 } }', { b: { x: 1 } }],
    ['quoted it is a key as any other', 'b: { "<<": 1 }', { b: { '<<': 1 } }],
    ['an empty one adds nothing', 'b: { <<: {}, x: 1 }', { b: { x: 1 } }],
  ])('%s', (_, text, value) => {
    expect(read(text).value).toEqual(value)
  })

  test.each(['a: 1\nb:\n  <<: 5\n', 'a: &a [1]\nb:\n  <<: *a\n', 'a: 1\nb:\n  <<:\n'])(
    'that hold no map are rejected with what they need: %j',
    (text) => {
      expect(problemsOf(text)).toMatchObject([
        { path: 'b', message: expect.stringContaining('needs a map, the alias of one such as *base') },
      ])
    },
  )
})

describe('aliases of YAML', () => {
  test('stand for what the nearest anchor before them marks', () => {
    expect(read('a: &x 1\nb: *x\nc: &x { y: 2 }\nd: [*x, *x]\n').value).toEqual({ a: 1, b: 1, c: { y: 2 }, d: [{ y: 2 }, { y: 2 }] })
  })

  test.each([
    ['without an anchor', 'a: *x\nb: &x 1\n'],
    ['inside their own anchor', 'b: &x\n  a: *x\n'],
  ])('%s are rejected', (_, text) => {
    expect(problemsOf(text)[0]?.message).toBe('The alias *x has no anchor &x before it.')
  })

  test('that name a name, not an object, may be keys', () => {
    expect(read('a: &x name\nb: { *x : 1 }\n').value).toEqual({ a: 'name', b: { name: 1 } })
    expect(problemsOf('a: &x [1]\nb: { *x : 1 }\n')[0]?.message).toBe('A key is [1]. Use a text.')
  })
})

test('what YAML reads is what its library reads, apart from merge keys', () => {
  const text = `# a comment
a: [1, 0x1f, 1.5e3, .inf, -0, "1", true, null, ~, yes, 2026-11-23T22:00:00Z]
b:
  - c: |
      two
      lines
    d: >-
      one
      line
  -
e: {}
f: []
__proto__: { polluted: true }
? g
: h
1: i
:  j
`
  const { value } = read(text)
  expect(value).toEqual(yaml.parse(text))
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
})
