import { expect, test } from 'vitest'
import { NO_POLICIES_YET } from '../../src/decide/check-policy.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { Throttler } from '../../src/throttler/throttler.ts'
import { offer, scene, thrownBy } from '../support/nodes.ts'

test('a throttler may get its policies later, and any other empty list is an error', async () => {
  const { world, node, close } = scene()
  const [one, two] = [node(NO_POLICIES_YET).start(), node(NO_POLICIES_YET).start()]
  await world.run(3_000)
  expect([one.policies, snapshot(one).policies, one.explain('a'), await one.usage('a'), one.state]).toEqual([[], [], [], [], 'synced'])
  for (const throttler of [one, two]) throttler.update([{ limit: 100, interval: '1m' }])
  offer(one, 'a', 100)
  await world.run(1_000)
  expect(two.check('a')).toMatchObject({ allowed: false, reason: 'limit' })
  one.update([...adapterOf(one).rules, { name: 'second', limit: 5, interval: '1m' }])
  expect(one.peek('a').parts.map(({ remaining }) => remaining)).toEqual([0, 5])
  for (const policies of [[], [...NO_POLICIES_YET]]) {
    expect(thrownBy(() => one.update(policies)).code).toBe('WEIR_INVALID_OPTION')
    expect(thrownBy(() => new Throttler({ policies })).code).toBe('WEIR_INVALID_OPTION')
  }
  await close()
})

test('a throttler that never got policies closes, idle or started, and without a store too', async () => {
  const { world, node, close } = scene()
  node(NO_POLICIES_YET)
  node(NO_POLICIES_YET, { alone: true }).start()
  node(NO_POLICIES_YET).start()
  await world.run(10_000)
  await close()
})
