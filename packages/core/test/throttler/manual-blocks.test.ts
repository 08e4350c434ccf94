import { describe, expect, test } from 'vitest'
import { snapshot } from '../../src/inspect/index.ts'
import { LONGEST_KEY } from '../../src/sync/link/store-reply.ts'
import { hostileKeys, type Node, offer, scene, thrownBy } from '../support/nodes.ts'

const policy = { name: 'user', limit: 5, interval: 1_000 } as const

function pair(): { one: Node; two: Node } & ReturnType<typeof scene> {
  const here = scene()
  const [one, two] = [0, 1].map(() => here.node(policy)) as [Node, Node]
  one.start()
  two.start()
  return { ...here, one, two }
}

describe('a block by hand', () => {
  test('holds at once here, and at nodes that have nothing to send', async () => {
    const { one, two, world, close } = pair()
    await world.run(50)
    one.block('a', '10s')
    expect(one.check('a')).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 10_000 })
    await world.run(1)
    expect(two.check('a')).toMatchObject({ allowed: false, reason: 'blocked' })
    expect(one.check('b').allowed).toBe(true)
    await world.run(9_998)
    expect(one.check('a').allowed || two.check('a').allowed).toBe(false)
    await world.run(2)
    expect(one.check('a').allowed && two.check('a').allowed).toBe(true)
    await close()
  })

  test('reaches the others without announcements, by the next heartbeat', async () => {
    const { one, two, world, store, close } = pair()
    store.announces = false
    await world.run(50)
    one.block('a', '10s')
    await world.run(1_000)
    expect(two.check('a').reason).toBe('blocked')
    one.unblock('a')
    await world.run(1_000)
    expect(two.check('a').allowed).toBe(true)
    await close()
  })

  test('is told as such by nodes that start later, that learn of it by an exchange, and after the store lost its data', async () => {
    const { one, two, node, world, store, close } = pair()
    await world.run(50)
    store.announces = false
    one.block('a', '1h')
    await world.run(1)
    offer(two, 'a', 3)
    await world.run(200)
    expect(two.check('a').reason).toBe('blocked')
    const young = node(policy).start() as Node
    await world.run(50)
    expect(young.check('a').reason).toBe('blocked')
    expect(snapshot(young).blocked).toEqual([expect.objectContaining({ key: 'a', cause: 'manual' })])
    store.hub.lose()
    await world.run(3_000)
    const later = node(policy).start() as Node
    await world.run(50)
    expect(later.check('a').reason).toBe('blocked')
    await close()
  })

  test('takes the place of a cooldown, and is told as such from then on', async () => {
    const here = scene()
    const cooling = { ...policy, cooldown: '1m' } as const
    const [one, two] = [here.node(cooling).start(), here.node(cooling).start()] as Node[] as [Node, Node]
    await here.world.run(50)
    offer(one, 'a', 6)
    await here.world.run(5)
    expect([one.check('a').reason, two.check('a').reason]).toEqual(['cooldown', 'cooldown'])
    two.block('a', '1m')
    await here.world.run(5)
    expect([one.check('a').reason, two.check('a').reason]).toEqual(['blocked', 'blocked'])
    await here.close()
  })

  test('is lifted everywhere, by any node', async () => {
    const { one, two, world, close } = pair()
    await world.run(50)
    offer(one, 'a', 3)
    one.block('a', '10s')
    await world.run(5)
    two.unblock('a')
    expect(two.check('a').allowed).toBe(true)
    await world.run(5)
    expect(one.peek('a')).toMatchObject({ allowed: true })
    await close()
  })

  test('is replaced by a shorter or a longer one', async () => {
    const { one, two, world, close } = pair()
    await world.run(50)
    one.block('a', '10s')
    await world.run(5)
    one.block('a', 100)
    await world.run(99)
    expect([one.check('a').allowed, two.check('a').allowed]).toEqual([false, false])
    await world.run(2)
    expect([one.check('a').allowed, two.check('a').allowed]).toEqual([true, true])
    await close()
  })

  test('set and lifted before the store heard of either, leaves the key open everywhere', async () => {
    const { one, two, world, store, close } = pair()
    store.roundTrip = 20
    await world.run(50)
    one.block('a', '10s')
    await world.run(5)
    one.unblock('a')
    await world.run(100)
    expect([one.check('a').allowed, two.check('a').allowed]).toEqual([true, true])
    await close()
  })

  test('lifted while the store was away stays lifted, also where setting it failed', async () => {
    const { one, two, world, store, close } = pair()
    await world.run(50)
    store.health = 'hanging'
    one.block('a', '10s')
    await world.run(1)
    one.block('b', '10s')
    await world.run(310)
    expect(one.state).toBe('storeDown')
    one.unblock('a')
    store.health = 'up'
    await world.run(1_000)
    expect([one, two].map((node) => node.check('a').allowed)).toEqual([true, true])
    expect([one, two].map((node) => node.check('b').allowed)).toEqual([false, false])
    await close()
  })

  test('lifted while the store was away stays lifted, also when setting it fails only then', async () => {
    const { one, two, world, store, close } = pair()
    await world.run(50)
    store.health = 'hanging'
    offer(one, 'b', 5)
    await world.run(200)
    one.block('a', '10s')
    await world.run(150)
    expect(one.state).toBe('storeDown')
    one.unblock('a')
    await world.run(200)
    store.health = 'up'
    await world.run(1_000)
    expect([one, two].map((node) => node.check('a').allowed)).toEqual([true, true])
    await close()
  })

  test('lifts a cooldown too; the counts stay', async () => {
    const here = scene()
    const throttler = here.node({ limit: 5, interval: 1_000, cooldown: '1m' })
    offer(throttler, 'a', 6)
    throttler.unblock('a')
    expect(throttler.peek('a')).toMatchObject({ allowed: false, reason: 'limit' })
    await here.world.run(1_000)
    expect(throttler.check('a').allowed).toBe(true)
  })

  test('of one policy leaves the others alone', () => {
    const { node } = scene()
    const throttler = node([policy, { ...policy, name: 'route' }])
    throttler.block('a', '10s', { policy: 'route' })
    expect(throttler.check('a').parts.map(({ reason }) => reason)).toEqual(['ok', 'blocked'])
    throttler.unblock('a', { policy: 'user' })
    expect(throttler.check('a').allowed).toBe(false)
    throttler.unblock('a', { policy: 'route' })
    expect(throttler.check('a').allowed).toBe(true)
  })

  test('is reported with its cause, where it was set and elsewhere', async () => {
    const { one, two, world, close } = pair()
    await world.run(50)
    const events: unknown[] = []
    for (const [name, node] of [
      ['one', one],
      ['two', two],
    ] as const) {
      node.on('blocked', ({ key, cause }) => events.push([name, 'blocked', key, cause]))
      node.on('unblocked', ({ key, cause }) => events.push([name, 'unblocked', key, cause]))
    }
    one.block('a', '10s')
    await world.run(5)
    expect(snapshot(one).blocked).toEqual([{ policy: 'user', key: 'a', remainingMs: 9_995, cause: 'manual' }])
    one.unblock('a')
    await world.run(5)
    expect(events).toEqual([
      ['one', 'blocked', 'a', 'manual'],
      ['two', 'blocked', 'a', 'remote'],
      ['one', 'unblocked', 'a', 'manual'],
      ['two', 'unblocked', 'a', 'remote'],
    ])
    await close()
  })

  test('of a strange key holds for that key alone, everywhere', async () => {
    const { one, two, world, close } = pair()
    await world.run(50)
    // Processes ignore announcements of longer keys.
    for (const key of hostileKeys.filter(({ length }) => length <= LONGEST_KEY)) {
      one.block(key, '10s')
      await world.run(1)
      for (const node of [one, two]) {
        expect(hostileKeys.filter((other) => !node.peek(other).allowed)).toEqual([key])
      }
      two.unblock(key)
      await world.run(1)
      for (const node of [one, two]) expect(node.peek(key).allowed).toBe(true)
    }
    await close()
  })
})

describe('where the table of keys is full', () => {
  test('a block by hand holds all the same, and is lifted', async () => {
    const here = scene()
    const full = here.node(policy, { maxKeys: 2 })
    const other = here.node(policy)
    other.start()
    for (const key of ['a', 'b', 'c']) full.check(key)
    await here.world.run(50)
    full.block('evil', '10s')
    await here.world.run(5)
    expect(full.check('evil')).toMatchObject({ allowed: false, reason: 'blocked' })
    expect(other.check('evil').allowed).toBe(false)
    expect(full.check('d').allowed).toBe(true)

    other.block('far', '10s')
    await here.world.run(5)
    expect(full.check('far').reason).toBe('blocked')
    full.unblock('far')
    await here.world.run(5)
    expect(other.check('far').allowed).toBe(true)
    await here.close()
  })
})

describe('bad input', () => {
  test('an unknown policy is named, with those that there are', () => {
    const { node } = scene()
    const throttler = node([policy, { ...policy, name: 'route' }])
    for (const call of [() => throttler.block('a', '1s', { policy: 'users' }), () => throttler.unblock('a', { policy: 'users' })]) {
      const error = thrownBy(call)
      expect(error.code).toBe('WEIR_UNKNOWN_POLICY')
      expect(error.message).toContain('"users"')
      expect(error.message).toContain('"user" and "route"')
    }
  })

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, '10', 'soon', undefined, null])('a duration of %s', (duration) => {
    const { node } = scene()
    const throttler = node(policy)
    const error = thrownBy(() => throttler.block('a', duration as number))
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    expect(error.message).toContain('"duration"')
    expect(throttler.check('a').allowed).toBe(true)
  })
})
