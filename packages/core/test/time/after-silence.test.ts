import { expect, test } from 'vitest'
import { afterSilence } from '../../src/time/after-silence.ts'
import { World } from '../support/world.ts'

test('time in which a process was blocked or stood still hardly counts, but it gives up in the end', async () => {
  const world = new World()
  let silent = false
  afterSilence(world.clock(), 1_000, () => {
    silent = true
  })
  await world.run(500)
  world.stall(60_000)
  await world.run(400)
  expect(silent).toBe(false)
  await world.run(110)
  expect(silent).toBe(true)

  silent = false
  afterSilence(world.clock(), 1_000, () => {
    silent = true
  })
  let freezes = 0
  for (; !silent && freezes < 100; freezes++) {
    world.stall(2_000)
    await world.run(5)
  }
  expect(freezes).toBe(40)
})

test('where requests drive the clock, each late timer counts', async () => {
  const world = new World()
  const clock = Object.assign(world.clock(), { driven: true })
  let silent = false
  afterSilence(clock, 1_000, () => {
    silent = true
  })
  for (let i = 0; i < 9; i++) {
    world.stall(2_000)
    await world.run(5)
  }
  expect(silent).toBe(false)
  world.stall(2_000)
  await world.run(5)
  expect(silent).toBe(true)
})

test('a cancelled one never calls', async () => {
  const world = new World()
  const cancel = afterSilence(world.clock(), 100, () => {
    throw new Error('cancelled')
  })
  await world.run(50)
  cancel()
  await world.run(500)
})
