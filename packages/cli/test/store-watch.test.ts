import type { Store } from '@weir/core'
import type { StoreConnection, SyncRequest } from '@weir/core/sync'
import { expect, test } from 'vitest'
import { StoreWatch } from '../src/cluster/store-watch.ts'

/** A store whose processes report these policies. */
function telling(names: () => readonly string[]) {
  const asked: string[][] = []
  const sync = async ({ heartbeat }: SyncRequest) => {
    asked.push((heartbeat?.policies ?? []).map(({ id }) => id))
    const rules = JSON.stringify(names().map((name) => [name, 1_000, 'fixedWindow', 'background']))
    const blocks = (heartbeat?.policies ?? []).map(({ id }) => ({ policyId: id, key: 'k', remaining: 1_000 }))
    const reply = { nodes: 2, generation: '', cursor: '1', blocks, hot: [], watched: false, rules: [{ node: 'n', rules }] }
    return { time: 0, results: [], blocks: [], heartbeat: reply }
  }
  const connection = { sync, close: async () => {} } as unknown as StoreConnection
  return { store: { kind: 'telling', open: () => connection } as unknown as Store, asked }
}

test('policies of ever new names are forgotten, and new ones are still shown', async () => {
  let number = 0
  const { store, asked } = telling(() => [`policy ${number}`, 'kept'])
  const watch = new StoreWatch(store)
  for (; number < 1_200; number++) await watch.look()
  expect(asked.at(-1)?.length).toBeLessThanOrEqual(1_000)
  number--
  const { blocked } = await watch.look()
  expect(blocked.map(({ policy }) => policy)).toEqual(expect.arrayContaining(['kept', 'policy 1199']))
})

test('more policies than are shown at once are not looked at again and again', async () => {
  const many = Array.from({ length: 1_500 }, (_, i) => `policy ${i}`)
  const { store, asked } = telling(() => many)
  const watch = new StoreWatch(store)
  await watch.look()
  const before = asked.length
  await watch.look()
  expect(asked.length - before).toBe(1)
  expect(asked.at(-1)).toHaveLength(1_000)
})
