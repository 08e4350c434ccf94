import { expect, test, vi } from 'vitest'
import type { Receipt } from '../../src/budget/receipt.ts'
import { scene } from '../support/nodes.ts'

test('a settlement counts that is in flight when the reservation ends', async () => {
  const it = scene()
  it.store.roundTrip = 10
  const node = it.node({ name: 'tokens', limit: 1_000, interval: '1h', coordination: 'central' })
  node.start()
  await vi.dynamicImportSettled()
  await it.world.run(1_100)
  await vi.waitFor(() => expect(it.store.deciders).toBe(1))
  let call: Receipt | undefined
  const done = node.reserveAsync('k', { cost: { tokens: 600 }, ttl: '5s' }).then((receipt) => {
    call = receipt
  })
  await it.world.run(5_000)
  await done
  call?.settle({ tokens: 100 })
  await it.world.run(3_000)
  const usage = node.usage('k')
  await it.world.run(100)
  expect((await usage)[0]?.used).toBe(100)
  await it.close()
})
