import { fixedWindow } from '@weir/core'
import type { Decide, DecidedPolicy } from '@weir/core/sync'
import { expect, test } from 'vitest'
import { PostgresDecider } from '../src/central/decider.ts'

test('requests that wait behind one that is never answered are bounded', async () => {
  const decider = new PostgresDecider({
    node: 'n',
    connection: { hold: () => {}, release: () => {} },
    storeTime: () => 0,
    heard: () => {},
    monotonic: () => 0,
    call: () => new Promise(() => {}),
  })
  const { step } = fixedWindow()
  const policy = { id: 'p', step, parameters: [1_000] } as unknown as DecidedPolicy
  const ask = (sequence: number) =>
    decider.decide({
      sequence,
      time: 0,
      questions: [{ policy, key: `key ${sequence}`, kind: 'take', units: 1, limit: 5, at: 0 }],
    } as Decide)
  void ask(0)
  await new Promise((resolve) => setImmediate(resolve))
  let rejected = 0
  for (let i = 1; i <= 12_000; i++)
    ask(i).catch(() => {
      rejected++
    })
  await new Promise((resolve) => setImmediate(resolve))
  expect(rejected).toBe(2_000)
})
