import { expect, test } from 'vitest'
import type { Algorithm } from '../../src/algorithms/algorithm.ts'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { ask, holding } from '../support/held.ts'
import { scene } from '../support/nodes.ts'

const LOCAL = { coordination: 'local', interval: 1_000 } as const

test('of a request that fits in part only the rest is above the limit', async () => {
  const it = scene()
  const overs: number[] = []
  const delay = (over: number): number => {
    overs.push(over)
    return 0
  }
  const node = await holding(it, { ...LOCAL, limit: 2, delay })
  for (let i = 0; i < 3; i++) ask(it, node, 'a', undefined, 1.5)
  expect(overs).toEqual([1, 2.5])
  await it.close()
})

test('the longest delay holds a request: of several functions, and of a function and a pace', async () => {
  const it = scene()
  const slow = (name: string, delay: number) => ({ ...LOCAL, name, interval: '1h', limit: 1, delay: () => delay }) as const
  const two = await holding(it, [slow('long', 700), slow('short', 100)])
  const pace = { ...LOCAL, name: 'pace', limit: 2, algorithm: leakyBucket({ burst: 9 }) } as const
  const paced = await holding(it, [slow('short', 100), pace])
  ask(it, two, 'a')
  ask(it, paced, 'a')
  const [functions, mixed, behind] = [ask(it, two, 'a'), ask(it, paced, 'a'), ask(it, paced, 'a')]
  await it.world.run(5_000)
  expect([functions.at, mixed.at, behind.at]).toEqual([700, 500, 1_000])
  await it.close()
})

test('what a function rejects later is not counted', async () => {
  const it = scene()
  const overs: number[] = []
  const delay = async (over: number): Promise<number> => {
    overs.push(over)
    return overs.length === 1 ? Number.POSITIVE_INFINITY : 100
  }
  const node = await holding(it, [
    { ...LOCAL, name: 'slow', interval: '1h', limit: 1, delay },
    { ...LOCAL, name: 'hour', interval: '1h', limit: 9 },
  ])
  ask(it, node, 'a')
  const rejected = ask(it, node, 'a')
  await it.world.run(10)
  expect(rejected.decision).toMatchObject({ allowed: false })
  expect(node.peek('a').parts[1]?.remaining).toBe(8)
  ask(it, node, 'a')
  await it.world.run(200)
  expect(overs).toEqual([1, 1])
  await it.close()
})

const WINDOWS: readonly Algorithm[] = [
  fixedWindow(),
  fixedWindow({ start: 'first-request' }),
  slidingWindow(),
  slidingLog(),
  slidingCounter(),
  tokenBucket(),
]

for (const algorithm of WINDOWS) {
  test(`a function says how long a request waits by how far above the limit it is: ${algorithm.name} ${algorithm.id}`, async () => {
    const it = scene()
    const overs: number[] = []
    const delay = (over: number, request: unknown): number => {
      overs.push(Math.round(over * 100) / 100)
      expect(request).toBe('the request')
      return Math.round(over) * 10
    }
    const node = await holding(it, { ...LOCAL, interval: '1m', limit: 2, algorithm, delay })
    const asked = Array.from({ length: 5 }, () => ask(it, node, 'a', { request: 'the request' }))
    await it.world.run(100)
    expect(overs).toEqual([1, 2, 3])
    expect(asked.map(({ at }) => at)).toEqual([0, 0, 10, 20, 30])
    expect(asked[4]?.decision).toMatchObject({ allowed: true, reason: 'ok', delayMs: 0, cost: 1 })
    await it.close()
  })
}

test('what counts in the background is slowed down by what all nodes have counted', async () => {
  const it = scene()
  const overs: number[] = []
  const policy = { limit: 10, interval: '1m', delay: (over: number) => overs.push(over) } as const
  const one = await holding(it, policy)
  const two = await holding(it, policy)
  await it.world.run(1_100)
  for (let i = 0; i < 12; i++) ask(it, one, 'a')
  await it.world.run(15_000)
  expect(overs).toEqual([1, 2])
  ask(it, two, 'a')
  await it.world.run(100)
  expect(overs).toEqual([1, 2, 3])
  await it.close()
})

test('a function may answer later; what is no duration, fails or is too long rejects the request', async () => {
  const it = scene()
  const answers: unknown[] = [
    Promise.resolve('1s'),
    Promise.resolve(Number.POSITIVE_INFINITY),
    new Promise(() => {}),
    Promise.reject(new Error('no')),
    'soon',
    -1,
    Number.NaN,
    undefined,
    Number.POSITIVE_INFINITY,
    '31s',
    0,
    '29s',
  ]
  let calls = 0
  const warnings: string[] = []
  const delay = () => {
    const answer = answers[calls++]
    if (answer === undefined) throw new Error('it broke')
    return answer as number
  }
  const node = await holding(it, { ...LOCAL, interval: '1h', limit: 1, delay })
  node.on('warning', ({ error }) => warnings.push(error.message))
  ask(it, node, 'a')
  const asked = answers.map(() => ask(it, node, 'a'))
  await it.world.run(40_000)
  expect(asked.map(({ at, decision }) => [decision?.allowed, at])).toEqual([
    [true, 1_000],
    [false, 0],
    [false, 1_000],
    ...Array.from({ length: 7 }, () => [false, 0]),
    [true, 0],
    [true, 29_000],
  ])
  // There is one warning per policy.
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toMatch(/^The delay function of policy "default" .+ Such requests are rejected\. See \S+$/)
  await it.close()
})
