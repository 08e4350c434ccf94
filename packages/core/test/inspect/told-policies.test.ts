import { createThrottler } from '@weir/core'
import { toldPolicies } from '@weir/core/inspect'
import { expect, it } from 'vitest'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { textOf, toldRules } from '../../src/sync/link/told-rule.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'

it('are those of the node that tells them, as a store knows them', () => {
  const policies = [
    { name: 'a: b', limit: 1, interval: '1m' },
    { name: 'b', limit: 1, interval: '1m', coordination: 'leased' },
  ] as const
  const throttler = createThrottler({ policies, store: memoryStore() })
  const text = textOf(toldRules(adapterOf(throttler).inspected as never))
  expect(toldPolicies(text)).toEqual(throttler.policies.map(({ id, name }) => ({ id, name })))
})

it.each(['', '{', '{}', 'null', '[1, null, "x", [], [1, 2, 3, 4], ["a", {}, "b", "c"], ["a", 1, "b"]]'])('are none in %j', (text) => {
  expect(toldPolicies(text)).toEqual([])
})
