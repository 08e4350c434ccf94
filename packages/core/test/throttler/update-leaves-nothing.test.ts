import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { scene } from '../support/nodes.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

const UPDATES = 60
const KEYS = 100

describe.each(['local', 'background', 'periodic', 'leased', 'central'] as const)('updates to ever new policies, %s', (coordination) => {
  test('keep the counts of the last ones only', async () => {
    const here = scene()
    const rule = (name: string) => ({ name, limit: 100, interval: '30d', spans: 60, coordination }) as const
    const node = here.node(rule('first'), { alone: coordination === 'local', maxKeys: 10 * KEYS })
    node.start()
    await here.world.run(2_000)
    const tables: WeakRef<object>[] = []
    for (let i = 0; i < UPDATES; i++) {
      for (let key = 0; key < KEYS; key++) void adapterOf(node).decideAsync([`user-${key}`], [1])
      await here.world.run(20)
      for (const { table } of adapterOf(node).inspected.limiters) tables.push(new WeakRef(table))
      node.update([rule(`policy ${i}`)])
      await here.world.run(1_000)
    }
    // The kept tables: of the used policy, of removed policies that may come back (as many keys as one policy may have), and of the last
    // loop step.
    const most = coordination === 'local' ? 2 : 12
    let kept = tables.length
    // A running collection keeps the objects that it has already visited.
    for (let turn = 0; turn < 5 && kept > most; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      collect()
      kept = tables.filter((table) => table.deref() !== undefined).length
    }
    expect(kept).toBeLessThanOrEqual(most)
    await here.close()
  })
})

test('a policy that was taken out some updates ago goes on with its counts', async () => {
  const here = scene()
  const rule = (name: string) => ({ name, limit: 10, interval: '1h' }) as const
  const node = here.node(rule('first'))
  node.start()
  await here.world.run(2_000)
  for (let i = 0; i < 9; i++) node.check('k')
  for (let i = 0; i < 10; i++) {
    node.update([rule(`policy ${i}`)])
    await here.world.run(500)
  }
  node.update([rule('first')])
  expect([node.check('k').allowed, node.check('k').allowed]).toEqual([true, false])
  await here.close()
})
