import { expect, test } from 'vitest'
import { compareBundles } from '../src/bundle/sizes.ts'

test('no bundle grows unnoticed', { timeout: 60_000 }, async () => {
  const beyond = (await compareBundles()).filter(({ bytes, most }) => bytes > most)
  expect(beyond).toEqual([])
})
