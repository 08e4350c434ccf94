import { beforeAll, expect, test } from 'vitest'
import * as yaml from 'yaml'
import { checkRules, parseRules, RulesError } from '../../src/rules/index.ts'

/** A document is read without a pause. A step that takes the square of its length would stop the process for minutes. */
const SMALL = 1_400
const FACTOR = 8
/** A linear reading takes 8 times as long, a quadratic one 64 times. */
const MOST = 20

const lines = (count: number, line: (at: number) => string) => Array.from({ length: count }, (_, at) => line(at)).join('')
const POLICY = '{ "key": "ip", "limit": 1, "interval": "1m" }'
const OVERRIDE = '{ "policy": "default", "key": "k", "limit": 1 }'

function read(text: string): void {
  try {
    checkRules(parseRules(text, { yaml }))
  } catch (error) {
    expect(error).toBeInstanceOf(RulesError)
  }
}

/** Processor time of this process in microseconds, so that other processes don't count. */
function cost(text: string): number {
  const before = process.cpuUsage()
  read(text)
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** The least cost of several runs. It stops once the cost is allowed. */
function leastCost(text: string, times: number, allowed = 0): number {
  let least = cost(text)
  for (let again = 1; again < times && least > allowed; again++) least = Math.min(least, cost(text))
  return least
}

// Code that is not compiled yet would make the small document seem expensive.
beforeAll(() => {
  for (let again = 0; again < 2; again++) read(`version: 1\npolicies:\n${`  - ${POLICY}\n`.repeat(SMALL / 2)}`)
})

test.each<[string, (count: number) => string]>([
  ['YAML: a map of many keys', (count) => `x:\n${lines(count, (at) => `  k${at}: 1\n`)}`],
  ['YAML: keys that are lists', (count) => `x: { ${lines(count, (at) => `[${at}]: 1, `)} }`],
  ['YAML: anchors with an alias each', (count) => `x:\n${lines(count / 2, (at) => ` - &a${at} 1\n - *a${at}\n`)}`],
  ['YAML: many errors in one line', (count) => '}'.repeat(4 * count)],
  ['YAML: errors in many lines', (count) => `x:\n${'  - @\n'.repeat(count / 4)}`],
  ['YAML: overrides', (count) => `version: 1\npolicies: [${POLICY}]\noverrides:\n${`  - ${OVERRIDE}\n`.repeat(count / 8)}`],
  ['JSON: an object of many keys', (count) => `{ ${lines(count, (at) => `"k${at}": 1, `)}"x": 1 }`],
  ['JSON: nested objects', (count) => `${'{ "a": '.repeat(count)}1${'}'.repeat(count)}`],
  [
    'JSON: problems in a long list',
    (count) => `{ "version": 1, "policies": [${POLICY}], "overrides": [${`${OVERRIDE}, `.repeat(count)}1] }`,
  ],
])('a document is read in time that grows with its length. %s', (_, make) => {
  // Costs below a millisecond can't be separated from the work around them.
  const allowed = MOST * Math.max(1_000, leastCost(make(SMALL), 3))
  // Garbage collections for other tests may fall into several runs in a row.
  expect(leastCost(make(SMALL * FACTOR), 20, allowed)).toBeLessThan(allowed)
})
