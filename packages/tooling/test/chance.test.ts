import { describe, expect, it, test } from 'vitest'
import { chanceIn } from '../src/chance.js'
import { SEED, seeds } from '../src/seed.js'

describe('the check for chance in tests', () => {
  it.each([
    'const seed = Date.now() % 100_000',
    "const SEED = Number(process.env['FC_SEED'] ?? Date.now() % 0x7fffffff)",
    "const base = process.env['LIES_SEED'] ?? '1'",
    'const first = process.env.SEED ?? 1',
    'const random = new SeededRandom(Date.now())',
    'const random = seeded(process.pid)',
    'const random = new Random(performance.now())',
    'throttler.check(`new $' + '{Math.random()}`)',
    'createThrottler({ policies, random: Math.random })',
    'const id = randomUUID()',
    'const byte = randomBytes(1)[0]',
    '{ numRuns: 1_500, seed: 18 },',
    '{ seed: 18, numRuns: 1_500 },',
    "test('costs little', { retry: 3 }, async () => {",
  ])('finds %j', (line) => {
    expect(chanceIn(`const before = 1\n${line}\n`)).toContainEqual(expect.stringMatching(/^line 2: /))
  })

  it.each([
    'const RUNNING = Math.floor(Date.now() / WIDTH)',
    'return `weir-$' + '{process.pid}-$' + '{++count}`',
    "['random', null, 'Math.random'],",
    '{ numRuns: 1_500 },',
    'test.each(seeds(8))(`seed %i`, async (seed) => {',
    'const random = new SeededRandom(`$' + '{SEED}/$' + '{run}`)',
  ])('leaves %j alone', (line) => {
    expect(chanceIn(line)).toEqual([])
  })

  it('lets support that is published read FC_SEED, with a fixed default', () => {
    expect(chanceIn("seed = process.env['FC_SEED'] ?? 1,", false)).toEqual([])
    expect(chanceIn("seed = process.env['FC_SEED'] ?? Date.now(),", false)).toHaveLength(1)
  })
})

test('properties of fast-check and Math.random follow the seed of the run', async () => {
  const { default: fc } = await import('fast-check')
  expect(fc.readConfigureGlobal()).toMatchObject({ seed: SEED })
  expect(fc.sample(fc.integer(), 5)).toEqual(fc.sample(fc.integer(), { numRuns: 5, seed: SEED }))
  expect(Math.random.toString()).not.toContain('native code')
})

test('seeds in a row begin with that of the run', () => {
  expect(seeds(3)).toEqual([SEED, SEED + 1, SEED + 2])
})
