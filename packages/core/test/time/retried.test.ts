import { outOfFiles } from '@weir/tooling/out-of-files'
import { expect, test } from 'vitest'
import { Retried } from '../../src/time/retried.ts'
import { World } from '../support/world.ts'

/** A `Retried` whose first attempts fail. */
function failing(times: number) {
  const world = new World()
  const clock = world.clock()
  const attempts: number[] = []
  const failures: unknown[] = []
  const retried = new Retried(
    async () => {
      attempts.push(world.time)
      if (attempts.length <= times) throw new Error(`failure ${attempts.length}`)
      return { number: attempts.length }
    },
    clock,
    (cause, first) => first && failures.push(cause),
  )
  return { world, clock, attempts, failures, retried }
}

test('a failed attempt is followed by others, after pauses that grow up to 10 s, and is reported once', async () => {
  const { world, clock, attempts, failures, retried } = failing(10)
  expect(await retried.load()).toBeUndefined()
  expect(retried.failing).toBe(true)
  await world.run(60_000)
  expect(attempts).toEqual([0, 100, 300, 700, 1_500, 3_100, 6_300, 12_700, 22_700, 32_700, 42_700])
  expect(retried).toMatchObject({ failing: false, value: { number: 11 } })
  expect(failures).toHaveLength(1)
  expect(clock.outstanding).toBe(0)
})

test('nobody makes a further attempt during a pause, and nothing is kept of those that asked', async () => {
  const { world, attempts, retried } = failing(1)
  const both = Promise.all([retried.load(), retried.load()])
  expect(await both).toEqual([undefined, undefined])
  for (let i = 0; i < 100; i++) expect(await retried.load()).toBeUndefined()
  expect(attempts).toHaveLength(1)
  await world.run(100)
  expect(await retried.load()).toEqual({ number: 2 })
})

test('a caller may wait for later attempts, in order and within its time', async () => {
  const { world, clock, retried } = failing(3)
  const order: string[] = []
  const first = retried.within(1_000).then((value) => order.push(`first ${value?.number}`))
  const second = retried.within(1_000).then((value) => order.push(`second ${value?.number}`))
  const short = retried.within(250).then((value) => order.push(`short ${value?.number}`))
  await world.run(1_000)
  await Promise.all([first, second, short])
  expect(order).toEqual(['short undefined', 'first 4', 'second 4'])
  expect(clock.outstanding).toBe(0)
})

test('it stops, also while an attempt is under way, and starts again if it is asked to', async () => {
  const { world, clock, attempts, retried } = failing(2)
  const loading = retried.load()
  retried.stop()
  expect(await loading).toBeUndefined()
  await world.run(60_000)
  expect(attempts).toHaveLength(1)
  void retried.load()
  await world.run(200)
  expect(retried.value).toEqual({ number: 3 })
  expect(clock.outstanding).toBe(0)
})

test('no attempt begins while the process has too few file descriptors for all files of a part', async () => {
  const { world, attempts, failures, retried } = failing(0)
  const files = outOfFiles()
  expect(await retried.load()).toBeUndefined()
  expect(attempts).toHaveLength(0)
  expect(failures).toMatchObject([{ code: 'EMFILE' }])
  files.end()
  await world.run(100)
  expect(retried.value).toEqual({ number: 1 })
})

test('a caller that leaves leaves nothing behind', async () => {
  const { world, clock, retried } = failing(3)
  let calls = 0
  const leave = retried.whenLoaded(() => calls++)
  retried.whenLoaded(() => (calls += 10))
  leave()
  await world.run(1_000)
  expect(calls).toBe(10)
  expect(clock.outstanding).toBe(0)
  retried.whenLoaded(() => (calls += 100))
  expect(calls).toBe(110)
})
