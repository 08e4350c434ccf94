import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ALGORITHMS, STEP_IDS, STEPS } from '../../src/algorithms/all.ts'
import type { MeterPolicy } from '../../src/algorithms/meter.ts'
import { tokenBucket } from '../../src/index.ts'

const SRC = fileURLToPath(new URL('../../src/', import.meta.url))
/** Rooms that need every algorithm. `index.ts` exports the list to other packages. */
const USERS = ['hub', 'index.ts', 'ipc', 'rules']

const policy = { name: 'api', id: 'api', limit: 10, interval: 60_000 } as MeterPolicy

test('algorithms have the names of the functions that make them', () => {
  for (const [name, make] of Object.entries(ALGORITHMS)) expect(make().name).toBe(`${name}()`)
  expect(new Set(Object.values(ALGORITHMS).map((make) => make().id)).size).toBe(Object.keys(ALGORITHMS).length)
})

test('each step of an algorithm is one by which a process decides for others', () => {
  const made = [...Object.values(ALGORITHMS).map((make) => make()), tokenBucket({ warmUp: '10s' })]
  const steps = made.flatMap(({ step }) => step ?? [])
  expect(steps.length).toBeGreaterThan(5)
  for (const step of steps) {
    const known = STEPS[step.id as keyof typeof STEPS]
    expect(known?.by(step.parameters(policy))?.id).toBe(step.id)
  }
  for (const id of STEP_IDS) expect(STEPS[id].by([60_000, 10, 10, 3])?.id).toBe(id)
})

test('no step is made of parameters out of its range', () => {
  expect(STEPS['sliding-window'].by([60_000, 5])).toBe(undefined)
  expect(STEPS['sliding-window'].by([60_000, 121])).toBe(undefined)
  expect(STEPS['sliding-window'].by([60_000])).toBe(undefined)
  expect(STEPS.bucket.by([60_000, 10, 10, -1])).toBe(undefined)
  expect(STEPS['bucket-warm-up'].by([60_000, 10, 0, 3])).toBe(undefined)
  expect(STEPS['bucket-warm-up'].by([60_000, 10, 10, 1])).toBe(undefined)
  expect(STEPS['bucket-warm-up'].by([60_000, 10, 10, 3, -1])).toBe(undefined)
})

test('only code that needs every algorithm imports all of them', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const users = files.filter((file) =>
    [...readFileSync(join(SRC, file), 'utf8').matchAll(/'(\.{1,2}\/[^']*)'/g)].some(
      ([, to = '']) => relative(SRC, join(SRC, dirname(file), to)) === join('algorithms', 'all.ts'),
    ),
  )
  expect(users.length).toBeGreaterThan(1)
  for (const file of users) expect(USERS).toContain(file.split(sep)[0])
})
