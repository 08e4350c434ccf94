import { expect, test } from 'vitest'
import { snapshot } from '../src/inspect/index.ts'
import type { SyncRequest } from '../src/store/contract.ts'
import { coordinate } from '../src/sync/coordinator.ts'
import type { Store } from '../src/throttler/coordinator.ts'
import { Throttler } from '../src/throttler/throttler.ts'
import { offer, thrownBy } from './support/nodes.ts'
import { TestStore } from './support/stores.ts'
import { World } from './support/world.ts'

/** Throttlers of one process that get the same store. */
function shop() {
  const world = new World()
  const store = new TestStore(world)
  const clock = world.clock({})
  let opened = 0
  let closed = 0
  const value: Store = {
    kind: 'counted',
    coordinate,
    open(node) {
      opened++
      const connection = store.open(node)
      return {
        sync: (request) => connection.sync(request),
        close: () => {
          closed++
          return connection.close()
        },
      }
    },
  }
  let seed = 0
  const random = () => (seed = (seed * 16_807 + 11) % 2_147_483_647) / 2_147_483_647
  const make = (name: string, options: object = {}): Throttler =>
    new Throttler({ policies: [{ name, limit: 10, interval: 10_000, ...options }], store: value, clock, random })
  const close = async (throttler: Throttler): Promise<void> => {
    const closing = throttler.close()
    await world.run(2_000)
    await closing
  }
  return { world, store, make, close, opened: () => opened, closed: () => closed }
}

const beats = (requests: readonly { readonly request: SyncRequest }[]): number =>
  requests.filter(({ request }) => request.heartbeat !== undefined).length

test('ten of them have one connection and one heartbeat, and count as one node', async () => {
  const { world, store, make, close, opened, closed } = shop()
  const throttlers = Array.from({ length: 10 }, (_, i) => make(`policy ${i}`).start())
  await world.run(5_100)
  expect(opened()).toBe(1)
  // One a second, and seven more after the start.
  expect(beats(store.requests)).toBeLessThanOrEqual(8 + 7)
  expect(new Set(throttlers.map(({ nodeId }) => nodeId)).size).toBe(1)
  expect(throttlers.map(({ state }) => state)).toEqual(Array(10).fill('synced'))
  expect(throttlers.map((one) => snapshot(one).nodes)).toEqual(Array(10).fill(1))
  for (const [i, throttler] of throttlers.entries()) expect(offer(throttler, 'a', 20)).toBe(i === 0 ? 10 : 10)
  for (const throttler of throttlers.slice(1)) await close(throttler)
  expect(closed()).toBe(0)
  expect(throttlers[0]?.state).toBe('synced')
  await close(throttlers[0] as Throttler)
  expect(closed()).toBe(1)
})

test('each hears of the state of the store', async () => {
  const { world, store, make, close } = shop()
  const throttlers = [make('a').start(), make('b').start()]
  await world.run(100)
  const heard: string[] = []
  for (const [i, one] of throttlers.entries()) {
    one.on('storeDown', () => heard.push(`${i} storeDown`))
    one.on('storeUp', () => heard.push(`${i} storeUp`))
  }
  store.health = 'rejecting'
  await world.run(3_000)
  expect(throttlers.map(({ state }) => state)).toEqual(['storeDown', 'storeDown'])
  store.health = 'up'
  await world.run(3_000)
  expect(heard).toEqual(['0 storeDown', '1 storeDown', '0 storeUp', '1 storeUp'])
  for (const one of throttlers) await close(one)
})

test('one that starts later learns what is blocked', async () => {
  const { world, make, close } = shop()
  const first = make('a').start()
  await world.run(100)
  const elsewhere = shop()
  await close(elsewhere.make('x'))
  const other = make('b', { cooldown: '1m' })
  first.block('k', '1m')
  await world.run(2_000)
  expect(other.check('k').allowed).toBe(true)
  other.block('k', '1m')
  expect(other.check('k').reason).toBe('blocked')
  await close(first)
  await close(other)
})

test('one that starts when all others were closed is a node that is heard of', async () => {
  const { world, store, make, close, opened } = shop()
  const [first, second] = [make('a').start(), make('b')]
  await world.run(2_500)
  await close(first)
  const before = beats(store.requests)
  second.start()
  await world.run(5_500)
  expect(opened()).toBe(2)
  expect(beats(store.requests) - before).toBeGreaterThanOrEqual(5)
  await close(second)
})

test('two with the same policy do not share what only one node may count: each is a node of its own', async () => {
  const { world, make, close, opened } = shop()
  const [one, two] = [make('same').start(), make('same').start()]
  expect(opened()).toBe(2)
  expect(one.nodeId).not.toBe(two.nodeId)
  expect(offer(one, 'a', 6)).toBe(6)
  await world.run(4_000)
  expect(offer(two, 'a', 20)).toBe(4)
  await close(one)
  await close(two)
})

test('what a closed one has counted is not forgotten when another begins with its policy', async () => {
  const { world, make, close } = shop()
  const other = make('other').start()
  const one = make('same').start()
  await world.run(100)
  expect(offer(one, 'a', 9)).toBe(9)
  await close(one)
  const two = make('same').start()
  await world.run(1_000)
  expect(offer(two, 'a', 1)).toBe(1)
  await world.run(2_000)
  const third = make('third').start()
  await world.run(100)
  expect(two.check('a').allowed).toBe(false)
  for (const throttler of [other, two, third]) await close(throttler)
})

test('a policy that is taken out and put back goes on with its counts', async () => {
  const { world, make, close } = shop()
  const [one, other] = [make('same').start(), make('other').start()]
  await world.run(100)
  expect(offer(one, 'a', 9)).toBe(9)
  one.update([{ name: 'something else', limit: 5, interval: 10_000 }])
  await world.run(500)
  one.update([{ name: 'same', limit: 10, interval: 10_000 }])
  expect(offer(one, 'a', 5)).toBe(1)
  await close(one)
  await close(other)
})

test('an update to a policy of another throttler is rejected, and nothing has changed', async () => {
  const { world, make, close } = shop()
  const [one, two] = [make('one').start(), make('two').start()]
  await world.run(100)
  expect(thrownBy(() => one.update([{ name: 'two', limit: 10, interval: 10_000 }])).code).toBe('WEIR_DUPLICATE_POLICY')
  expect(one.policies.map(({ name }) => name)).toEqual(['one'])
  await close(one)
  await close(two)
})

test('one that was made but starts when all others are closed opens a connection of its own', async () => {
  const { world, make, close, opened, closed } = shop()
  const late = make('late')
  const first = make('first').start()
  await world.run(100)
  const before = first.nodeId
  await close(first)
  expect([opened(), closed()]).toEqual([1, 1])
  expect(offer(late, 'a', 20)).toBe(10)
  await world.run(2_000)
  expect(opened()).toBe(2)
  expect(late.state).toBe('synced')
  expect(late.nodeId).not.toBe(before)
  await close(late)
})

test('a policy of a closed throttler is shared again once the store has no counts of it', async () => {
  const { world, make, close, opened } = shop()
  const stays = make('stays').start()
  await close(make('goes').start())
  const node = make('goes').start()
  expect(opened()).toBe(2)
  await close(node)
  await world.run(30_000)
  const again = make('goes').start()
  expect(opened()).toBe(2)
  expect(again.nodeId).toBe(stays.nodeId)
  await close(again)
  await close(stays)
})

test('ever new policies of closed throttlers are not remembered without bound: after 1,000 of them the next throttler is a node of its own', async () => {
  const { make, close, opened } = shop()
  const first = make('stays').start()
  for (let i = 0; i < 1_000; i++) await make(`goes ${i}`, { interval: '30d' }).close()
  const second = make('new').start()
  expect(opened()).toBe(2)
  expect(second.nodeId).not.toBe(first.nodeId)
  await close(first)
  await close(second)
})
