import { MemoryStore } from 'express-rate-limit'
import { describe, expect, test } from 'vitest'
import { EXCEPTIONS } from './exceptions.ts'
import { MIDDLEWARE_CASES } from './middleware-cases.ts'
import { STORE_CASES } from './store-cases.ts'
import { shutDownLater, storeOver, weirStores } from './support.ts'

// The suite of express-rate-limit is not part of its package. These are its cases that concern a store.
const CASES = [...STORE_CASES, ...MIDDLEWARE_CASES]

describe.each(weirStores())('expressRateLimitStore(%s)', (_name, store) => {
  for (const { name, run } of CASES) {
    const reason = EXCEPTIONS[name]
    if (reason === undefined) test(name, () => run(() => storeOver(store())))
    else
      test(`differs: ${name}`, () =>
        expect(
          run(() => storeOver(store())),
          `no exception any more: ${reason}`,
        ).rejects.toThrow())
  }
})

// Otherwise a case could fail for a reason of its own, and an exception would prove nothing.
describe('the memory store of express-rate-limit', () => {
  for (const { name, run } of CASES) test(name, () => run(() => shutDownLater(new MemoryStore())))
})

test('each exception names a case', () => {
  const names = CASES.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  expect(Object.keys(EXCEPTIONS).filter((name) => !names.includes(name))).toEqual([])
})
