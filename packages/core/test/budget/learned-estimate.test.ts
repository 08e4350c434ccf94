import { expect, test } from 'vitest'
import { type LearnedEstimateOptions, learnedEstimate } from '../../src/budget/learned-estimate.ts'
import { seeded } from '../support/nodes.ts'

const OPTIONS: LearnedEstimateOptions = { underageCost: 4, overageCost: 1, maxOutput: 64_000 }
const NEXT = 2 ** (1 / 16)

test('it is the input and the maximum until enough calls have ended, and never more or less than that allows', () => {
  const output = learnedEstimate(OPTIONS)
  const call = { input: 500, max: 1_000 }
  for (let calls = 0; calls < 49; calls++) {
    expect(output.estimate('m', call)).toBe(1_500)
    output.learn('m', 100)
  }
  output.learn('m', 100)
  expect(output.estimate('m', call)).toBeGreaterThanOrEqual(600)
  expect(output.estimate('m', call)).toBeLessThanOrEqual(500 + 100 * NEXT)
  expect(output.estimate('m', { input: 500, max: 30 })).toBe(530)
  expect(output.estimate('m', { input: 500, max: 0 })).toBe(500)
  expect(output.estimate('other', call)).toBe(1_500)
})

test('of several maxima the largest valid one counts, and without one that of the options', () => {
  const output = learnedEstimate(OPTIONS)
  expect(output.estimate('m', { input: 500, max: [200, 1_000] })).toBe(1_500)
  expect(output.estimate('m', { input: 500, max: [undefined, 300] })).toBe(800)
  for (const max of [undefined, null, '900', -5, Number.NaN, 1.5, Number.POSITIVE_INFINITY, {}, [], ['x', -1]])
    expect(output.estimate('m', { input: 500, max })).toBe(64_500)
})

// Small and large costs of a unit short, and outputs of different forms.
const FRACTILES = [0.5, 0.8, 0.95, 0.99]
const FORMS: Readonly<Record<string, (random: () => number) => number>> = {
  even: (random) => Math.floor(random() * 4_000),
  'with a long tail': (random) => Math.floor(20 / (1 - random()) ** 1.2),
  'around two lengths': (random) => Math.floor((random() < 0.7 ? 60 : 2_500) * (0.8 + 0.4 * random())),
}

test.each(Object.entries(FORMS))('outputs %s: the estimate is the quantile or up to 4.5 % more', (_, form) => {
  for (const [i, q] of FRACTILES.entries()) {
    const random = seeded(38 + i)
    const output = learnedEstimate({ underageCost: q, overageCost: 1 - q, maxOutput: 2 ** 24 })
    const all: number[] = []
    for (let calls = 0; calls < 1_999; calls++) {
      const one = form(random)
      all.push(one)
      output.learn('m', one)
    }
    all.sort((a, b) => a - b)
    const estimate = output.estimate('m', { input: 0 })
    // The sum of the weights may miss the quantile's own place by rounding.
    expect(estimate).toBeGreaterThanOrEqual(all[Math.ceil(q * all.length) - 2] as number)
    expect(estimate).toBeLessThanOrEqual((all[Math.ceil(q * all.length)] as number) * NEXT)
  }
})

test('no other amount would have cost less: it is the optimum of the newsvendor, within the width of a bucket', () => {
  const random = seeded(7)
  const all = Array.from({ length: 1_500 }, () => FORMS['with a long tail']?.(random) as number)
  const { underageCost, overageCost } = OPTIONS
  const costOf = (reserved: number) =>
    all.reduce((sum, used) => sum + (used > reserved ? underageCost * (used - reserved) : overageCost * (reserved - used)), 0)
  const output = learnedEstimate({ ...OPTIONS, maxOutput: 2 ** 24 })
  for (const one of all) output.learn('m', one)
  const best = Math.min(...all.map(costOf))
  expect(costOf(output.estimate('m', { input: 0 }))).toBeLessThan(1.01 * best)
  expect(costOf(Math.max(...all))).toBeGreaterThan(2 * best)
})

test('it follows a change of the outputs within a few thousand calls', () => {
  const output = learnedEstimate(OPTIONS)
  for (let calls = 0; calls < 50_000; calls++) output.learn('m', 3_000)
  for (let calls = 0; calls < 5_000; calls++) output.learn('m', 100)
  expect(output.estimate('m', { input: 0 })).toBeLessThanOrEqual(100 * NEXT)
})

test('a later output of the same call replaces the earlier one', () => {
  const output = learnedEstimate(OPTIONS)
  for (let calls = 0; calls < 4_000; calls++) {
    const call = {}
    for (const tokens of [1, 10, 100, 1_000]) output.learn('m', tokens, call)
  }
  const estimate = output.estimate('m', { input: 0 })
  expect(estimate).toBeGreaterThanOrEqual(1_000)
  expect(estimate).toBeLessThanOrEqual(1_000 * NEXT)
})

test('values that are no outputs are ignored, and very large ones count as 2^24', () => {
  const output = learnedEstimate({ ...OPTIONS, maxOutput: 2 ** 30 })
  for (const bad of [Number.NaN, -1, Number.POSITIVE_INFINITY, '5', undefined])
    for (let i = 0; i < 100; i++) output.learn('m', bad as never)
  expect(output.estimate('m', { input: 0 })).toBe(2 ** 30)
  for (let i = 0; i < 100; i++) output.learn('m', Number.MAX_VALUE)
  expect(output.estimate('m', { input: 0 })).toBe(2 ** 24)
})

test('memory is bounded: the kinds that were not used for longest are forgotten', () => {
  const output = learnedEstimate(OPTIONS)
  const learn = (kind: string) => {
    for (let i = 0; i < 60; i++) output.learn(kind, 100)
  }
  const long = 'x'.repeat(100_000)
  learn(long)
  learn('used')
  for (let kind = 0; kind < 600; kind++) {
    learn(`kind ${kind}`)
    expect(output.estimate('used', { input: 0 })).toBeLessThan(110)
  }
  expect(output.estimate(long, { input: 0 })).toBe(64_000)
  expect(output.estimate('kind 0', { input: 0 })).toBe(64_000)
  expect(output.estimate('kind 599', { input: 0 })).toBeLessThan(110)
})

test.each([
  [{ ...OPTIONS, underageCost: 0 }, 'Option "underageCost"'],
  [{ ...OPTIONS, overageCost: Number.POSITIVE_INFINITY }, 'Option "overageCost"'],
  [{ underageCost: 1, maxOutput: 5 }, 'Option "overageCost" is missing'],
  [{ underageCost: 1, overageCost: 1 }, 'Option "maxOutput" is missing'],
  [{ ...OPTIONS, maxOutput: 1.5 }, 'Option "maxOutput"'],
  [{ ...OPTIONS, max: 5 }, 'Unknown option "max"'],
])('bad options are rejected: %j', (options, message) => {
  expect(() => learnedEstimate(options as never)).toThrow(message)
})
