import { expect, it } from 'vitest'
import { loadMutant, mutate } from './mutant.ts'

const edit = { file: 'some.ts', find: 'a + b', replace: 'a' }

it('a mutation changes one place', () => {
  expect(mutate('const c = a + b', edit)).toBe('const c = a')
})

it('a mutation whose place is gone, or is not the only one, says so', async () => {
  expect(() => mutate('const c = a - b', edit)).toThrow('"a + b" occurs 0 times in some.ts')
  expect(() => mutate('a + b, a + b', edit)).toThrow('"a + b" occurs 2 times in some.ts')
  await expect(loadMutant([{ file: 'counting/estimate.ts', find: 'nothing like it', replace: '' }])).rejects.toThrow('occurs 0 times')
})
