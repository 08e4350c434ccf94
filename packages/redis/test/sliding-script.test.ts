import { expect, test, vi } from 'vitest'
import { EXCHANGE } from '../src/scripts/exchange.ts'

const loaded = vi.hoisted(() => ({ times: 0 }))

vi.mock('../src/scripts/exchange-with-sliding.ts', async (original) => {
  loaded.times++
  return original()
})

test('the script of sliding windows is no part of the other, and is not loaded with the store', async () => {
  await import('../src/index.ts')
  await import('../src/exchange/exchange.ts')
  expect(loaded.times).toBe(0)
  const { EXCHANGE_WITH_SLIDING } = await import('../src/scripts/exchange-with-sliding.ts')
  expect(EXCHANGE_WITH_SLIDING).toContain('function sliding(')
  expect(EXCHANGE).not.toContain('function sliding(')
})
