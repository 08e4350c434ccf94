import { describe, expect, test, vi } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { ReserveOptions } from '../../src/budget/options.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { started } from '../support/central.ts'
import { scene, thrownBy, warnings } from '../support/nodes.ts'

const REQUESTS = { name: 'requests', limit: 10, interval: '1m' } as const
const TOKENS = { name: 'tokens', limit: 1_000, interval: '1m', maxReservation: 800 } as const
const SLOTS = { name: 'slots', limit: 2, algorithm: concurrency() } as const

function local(...policies: readonly object[]) {
  const it = scene()
  return { it, node: it.node(policies as never, { alone: true }) }
}

describe('costs by policy name', () => {
  test('check, peek, checkAsync and acquire count only the named policies', async () => {
    const { node } = local(REQUESTS, TOKENS)
    expect(node.check('a', { cost: { requests: 1, tokens: 900 } }).parts).toHaveLength(2)
    const one = node.check('a', { cost: { requests: 2 } })
    expect(one).toMatchObject({ policy: { name: 'requests' }, cost: 2, remaining: 7 })
    expect(node.peek('a', { cost: { tokens: 101 } })).toMatchObject({ allowed: false, policy: { name: 'tokens' } })
    expect((await node.checkAsync('a', { cost: { tokens: 60 } })).remaining).toBe(40)
    expect((await node.acquire('a', { cost: { tokens: 40, requests: 1 } })).allowed).toBe(true)
    expect((await node.tryAcquire('a', { cost: { tokens: 1 } })).allowed).toBe(false)
    expect(node.check('a', { cost: { tokens: undefined } }).allowed).toBe(false)
    expect(node.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([6, 0])
  })

  test('a rejection at one policy takes nothing at the others', () => {
    const { node } = local(REQUESTS, TOKENS)
    expect(node.check('a', { cost: { requests: 1, tokens: 1_001 } })).toMatchObject({ allowed: false, policy: { name: 'tokens' } })
    expect(node.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([10, 1_000])
  })

  test('an unknown name throws before anything has changed, even the name of an inherited property', () => {
    const { node } = local(REQUESTS, TOKENS)
    for (const cost of [{ tokens: 1, token: 1 }, { constructor: 1 }]) {
      for (const call of ['check', 'peek', 'reserve'] as const) {
        expect(thrownBy(() => node[call]('a', { cost } as never)).code).toBe('WEIR_UNKNOWN_POLICY')
      }
    }
    expect(node.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([10, 1_000])
    const odd = local({ ...REQUESTS, name: 'constructor' }, TOKENS).node
    expect(odd.check('a', { cost: { tokens: 5 } }).parts).toHaveLength(1)
  })

  test('a waiting request gets its units of each policy together', async () => {
    const { it, node } = local({ ...REQUESTS, limit: 1 }, TOKENS)
    node.check('a', { cost: { requests: 1 } })
    await it.world.run(40_000)
    const waiting = node.acquire('a', { cost: { requests: 1, tokens: 300 }, timeout: '30s' })
    await vi.dynamicImportSettled()
    await it.world.run(10_000)
    expect(node.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([0, 1_000])
    await it.world.run(11_000)
    expect((await waiting).allowed).toBe(true)
    expect(node.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([0, 700])
    await it.close()
  })

  test('charge and refund correct each policy by its own units, of a decision or of a key', () => {
    const { node } = local(REQUESTS, TOKENS)
    const decision = node.check('a', { cost: { requests: 3, tokens: 300 } })
    node.charge(decision, { cost: { tokens: 50 } })
    node.refund(decision, { cost: { requests: 2, tokens: 100 } })
    expect(node.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([9, 750])
    node.charge('a', { cost: { requests: 4, tokens: 150 } })
    expect(node.refund('a', { cost: { requests: 1, tokens: 9_999 } })).toEqual({ requests: 1, tokens: 400 })
    expect(node.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([6, 1_000])
    expect(thrownBy(() => node.charge('a', { cost: { requests: 1, other: 1 } as never })).code).toBe('WEIR_UNKNOWN_POLICY')
    expect(thrownBy(() => node.refund('a', { cost: { requests: 1, tokens: -1 } })).code).toBe('WEIR_INVALID_OPTION')
    expect(node.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([6, 1_000])
  })
})

describe('reserve', () => {
  test('all policies count it or none, and the rejection names the policy', () => {
    const { node } = local(REQUESTS, TOKENS)
    const call = node.reserve('a', { cost: { requests: 1, tokens: 700 } })
    expect(call).toMatchObject({ allowed: true, isOpen: true, key: 'a' })
    const no = node.reserve('a', { cost: { requests: 1, tokens: 301 } })
    expect(no).toMatchObject({ allowed: false, isOpen: false, reason: 'limit', policy: { name: 'tokens' } })
    expect(no.retryAfterMs).toBeGreaterThan(0)
    no.used({ tokens: 5 })
    no.settle({ tokens: 5 })
    no.cancel()
    expect(node.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([9, 300])
  })

  test('the block of `using` settles it', () => {
    const { node } = local(TOKENS)
    {
      using call = node.reserve('a', { cost: { tokens: 500 } })
      call.used({ tokens: 20 })
    }
    expect(node.peek('a', 0).remaining).toBe(980)
  })

  test('more than maxReservation never fits, and more than the limit never does', () => {
    const { node } = local(TOKENS)
    expect(node.reserve('a', { cost: { tokens: 801 } })).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
    expect(node.reserve('a', { cost: { tokens: 1_001 } })).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
    expect(node.reserve('a', { cost: { tokens: 800 } }).allowed).toBe(true)
    expect(node.check('b', { cost: { tokens: 900 } }).allowed).toBe(true)
    for (const maxReservation of [0, 1_001, 1.5, '5', Number.NaN]) {
      expect(thrownBy(() => local({ ...TOKENS, maxReservation })).message).toContain('a whole number from 1 to 1000')
    }
    expect(thrownBy(() => local({ ...SLOTS, maxReservation: 1 })).message).toMatch(/Remove "maxReservation"/)
    expect(() => local({ ...TOKENS, algorithm: tokenBucket({ burst: 2_000 }), maxReservation: 2_000 })).not.toThrow()
  })

  test.each([
    [{}, 'WEIR_INVALID_OPTION'],
    [undefined, 'WEIR_INVALID_OPTION'],
    [{ cost: 5 }, 'WEIR_INVALID_OPTION'],
    [{ cost: {} }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: undefined } }, 'WEIR_INVALID_OPTION'],
    [{ cost: [5] }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: 0 } }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: 1.5 } }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: '5' } }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: 2 ** 53 } }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: 5 }, ttl: '5' }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: 5 }, ttl: 5 }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: 5 }, ttl: '60d' }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: 5 }, expire: 'never' }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: 5 }, id: '' }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: 5 }, id: 'x'.repeat(257) }, 'WEIR_INVALID_OPTION'],
    [{ cost: { tokens: 5 }, timeout: 5 }, 'WEIR_UNKNOWN_OPTION'],
  ])('%j throws %s, and nothing is counted', async (options, code) => {
    const { node } = local(TOKENS)
    expect(thrownBy(() => node.reserve('a', options as never)).code).toBe(code)
    await expect(node.reserveAsync('a', options as never)).rejects.toMatchObject({ code })
    expect(node.peek('a', 0).remaining).toBe(1_000)
  })

  test('a key that is no string throws, and after close everything does', async () => {
    const { it, node } = local(TOKENS)
    expect(thrownBy(() => node.reserve(5 as never, { cost: { tokens: 5 } })).code).toBe('WEIR_INVALID_KEY')
    const call = node.reserve('a', { cost: { tokens: 5 } })
    await it.close()
    expect(call.isOpen).toBe(false)
    call.settle({ tokens: 900 })
    expect(thrownBy(() => node.reserve('a', { cost: { tokens: 5 } })).code).toBe('WEIR_CLOSED')
    await expect(node.reserveAsync('a', { cost: { tokens: 5 } })).rejects.toMatchObject({ code: 'WEIR_CLOSED' })
  })

  test('unusable numbers are ignored with one warning per policy', () => {
    const { node } = local(TOKENS, REQUESTS)
    const heard: string[] = []
    node.on('warning', ({ error }) => heard.push(error.message))
    const call = node.reserve('a', { cost: { tokens: 100 } })
    for (const bad of [-1, Number.NaN, Number.POSITIVE_INFINITY, '5', {}, 5n]) call.used({ tokens: bad as number })
    call.used({ requests: 1 })
    call.used({ other: 1 } as never)
    call.used(undefined as never)
    call.settle({ tokens: Number.NaN, requests: undefined })
    expect(node.peek('a', { cost: { tokens: 0 } }).remaining).toBe(900)
    expect(heard).toEqual([
      expect.stringContaining('used() got -1 units of policy "tokens"'),
      expect.stringContaining('used() got 1 units of policy "requests", and ignored them. Name the policy in "cost" of reserve().'),
      expect.stringContaining('used() got 1 units of policy "other"'),
      expect.stringContaining('settle() got NaN units'),
    ])
  })

  test('fractions of used units are rounded up', () => {
    const { node } = local(TOKENS)
    node.reserve('a', { cost: { tokens: 100 } }).settle({ tokens: 10.2 })
    expect(node.peek('a', 0).remaining).toBe(989)
  })

  test('a settlement frees the slot and the units, once', async () => {
    const { node } = local(TOKENS, SLOTS)
    const cost = { tokens: 100, slots: 1 }
    const [one, two] = [node.reserve('a', { cost }), node.reserve('a', { cost })]
    expect(node.reserve('a', { cost })).toMatchObject({ allowed: false, policy: { name: 'slots' } })
    const waiting = node.acquire('a', { cost: { slots: 1 } })
    one.settle({ tokens: 40 })
    one.settle({ tokens: 40 })
    await waiting
    expect(node.reserve('a', { cost }).allowed).toBe(false)
    two.cancel()
    expect(node.peek('a', 0).parts.map(({ remaining }) => remaining)).toEqual([960, 1])
  })

  test('units never return to a later interval, and a debt counts in the running one', async () => {
    const { it, node } = local(TOKENS)
    const [low, high] = [node.reserve('a', { cost: { tokens: 300 } }), node.reserve('a', { cost: { tokens: 300 } })]
    await it.world.run(60_001)
    node.check('a', { cost: { tokens: 500 } })
    low.settle({ tokens: 1 })
    expect(node.peek('a', 0).remaining).toBe(500)
    high.settle({ tokens: 450 })
    expect(node.peek('a', 0).remaining).toBe(350)
    await it.close()
  })

  test('waiting policies and policies that delay need reserveAsync', async () => {
    const it = scene()
    const node = it.node([{ ...TOKENS, coordination: 'central' }, REQUESTS])
    expect(thrownBy(() => node.reserve('a', { cost: { requests: 1 } }))).toMatchObject({
      code: 'WEIR_ASYNC_POLICY',
      message: expect.stringContaining('await throttler.reserveAsync(key, options)'),
    })
    const delaying = local({ ...REQUESTS, limit: 1, delay: '90s' })
    expect(thrownBy(() => delaying.node.reserve('a', { cost: { requests: 1 } })).code).toBe('WEIR_ASYNC_POLICY')
    expect((await delaying.node.reserveAsync('a', { cost: { requests: 1 } })).allowed).toBe(true)
    let second: { isOpen: boolean } | undefined
    void delaying.node.reserveAsync('a', { cost: { requests: 1 } }).then((receipt) => {
      second = receipt
    })
    await vi.dynamicImportSettled()
    await delaying.it.world.run(59_000)
    expect(second).toBeUndefined()
    await delaying.it.world.run(2_000)
    expect(second?.isOpen).toBe(true)
  })

  test('a store that keeps no reservations is rejected by policies that need it', async () => {
    const it = scene()
    const { kind, decides, coordinate } = it.store
    const store = { kind, decides, coordinate, open: (one: never) => it.store.open(one) }
    const node = it.node([{ ...TOKENS, coordination: 'central' }, REQUESTS], { store } as never)
    await expect(node.reserveAsync('a', { cost: { tokens: 5 } })).rejects.toMatchObject({
      code: 'WEIR_INVALID_OPTION',
      message: expect.stringContaining('keep open reservations, which policy "tokens" needs'),
    })
    await it.close()
  })
})

describe('an id', () => {
  const OPTIONS = { cost: { tokens: 100 }, id: 'call-1' } satisfies ReserveOptions

  test('returns the same receipt as long as the reservation is open, for each key', () => {
    const { node } = local(TOKENS)
    const first = node.reserve('a', OPTIONS)
    expect(node.reserve('a', { ...OPTIONS, cost: { tokens: 100 } })).toBe(first)
    expect(node.reserve('b', OPTIONS)).not.toBe(first)
    expect(node.peek('a', 0).remaining).toBe(900)
    expect(thrownBy(() => node.reserve('a', { ...OPTIONS, cost: { tokens: 101 } })).message).toContain('or another id')
    first.settle()
    const next = node.reserve('a', OPTIONS)
    expect(next).not.toBe(first)
    expect(node.peek('a', 0).remaining).toBe(800)
  })

  test('a rejected reservation may be tried again under its id', () => {
    const { node } = local(TOKENS)
    const full = node.reserve('a', { cost: { tokens: 800 } })
    node.check('a', { cost: { tokens: 150 } })
    expect(node.reserve('a', OPTIONS).allowed).toBe(false)
    full.cancel()
    expect(node.reserve('a', OPTIONS).allowed).toBe(true)
  })

  test('calls at the same time share one reservation, even while the store has not answered', async () => {
    const it = scene()
    it.store.roundTrip = 10
    const node = it.node({ ...TOKENS, coordination: 'central' })
    await started(it, node)
    const both = Promise.all([node.reserveAsync('a', OPTIONS), node.reserveAsync('a', OPTIONS)])
    await it.world.run(50)
    const [one, two] = await both
    expect(one).toBe(two)
    expect(one.remaining).toBe(900)
    const local = scene().node(TOKENS, { alone: true })
    const pending = local.reserveAsync('a', OPTIONS)
    expect(local.reserve('a', OPTIONS)).toBe(await pending)
    await it.close()
  })

  test('a call that failed leaves no trace of its id', async () => {
    const it = scene()
    const node = it.node({ ...TOKENS, coordination: 'central' })
    await started(it, node)
    await expect(node.reserveAsync('a', { ...OPTIONS, cost: { other: 1 } } as never)).rejects.toMatchObject({ code: 'WEIR_UNKNOWN_POLICY' })
    const done = node.reserveAsync('a', OPTIONS)
    await it.world.run(50)
    expect((await done).allowed).toBe(true)
    await it.close()
  })
})

describe('the store', () => {
  const USD = { name: 'usd', limit: 1_000, interval: '1h', coordination: 'central' } as const

  test('several policies at the store and in the process: a rejection leaves no open reservation', async () => {
    const it = scene()
    it.store.parts = 2
    const node = it.node([USD, { ...USD, name: 'tokens', limit: 50 }, REQUESTS])
    await started(it, node)
    const no = node.reserveAsync('a', { cost: { usd: 900, tokens: 51, requests: 1 } })
    await it.world.run(50)
    expect(await no).toMatchObject({ allowed: false, policy: { name: 'tokens' } })
    const yes = node.reserveAsync('a', { cost: { usd: 1_000, tokens: 50, requests: 10 } })
    await it.world.run(50)
    expect((await yes).allowed).toBe(true)
    await it.close()
  })

  test('close settles open reservations at the store, by their last use', async () => {
    const it = scene()
    it.store.roundTrip = 20
    const [node, other] = [it.node(USD), it.node(USD)]
    await started(it, node, other)
    const all = Promise.all([600, 300].map((usd) => node.reserveAsync('a', { cost: { usd } })))
    await it.world.run(100)
    const [one] = await all
    one?.used({ usd: 50 })
    await it.close(node)
    const rest = other.reserveAsync('a', { cost: { usd: 650 } })
    await it.world.run(100)
    expect((await rest).allowed).toBe(true)
    await it.close(other)
  })

  test('a reservation whose answer comes while the throttler is being closed settles at once', async () => {
    const it = scene()
    it.store.roundTrip = 200
    const node = it.node({ ...USD, storeTimeout: '1s' })
    await started(it, node)
    const late = node.reserveAsync('a', { cost: { usd: 600 } })
    const closed = it.close(node)
    const receipt = await late
    expect(receipt.isOpen).toBe(false)
    await closed
    await it.world.run(5_000)
    receipt.settle({ usd: 1 })
    expect(it.store.decided.at(-1)?.at).toBeLessThan(it.world.time - 4_000)
  })

  test('a decision of acquire becomes a reservation that the store settles if the process dies', async () => {
    const it = scene()
    const [dead, other] = [it.node(USD), it.node(USD)]
    await started(it, dead, other)
    const acquired = dead.acquire('a', { cost: { usd: 900 } })
    await vi.dynamicImportSettled()
    await it.world.run(100)
    const receipt = adapterOf(dead).receiptOf(await acquired, { ttl: '5s', expire: 'refund' })
    expect(receipt).toMatchObject({ isOpen: true, cost: 900 })
    await it.world.run(1_000)
    it.store.dead.add(dead.nodeId)
    await it.world.run(5_000)
    const rest = other.reserveAsync('a', { cost: { usd: 1_000 } })
    await it.world.run(100)
    expect((await rest).allowed).toBe(true)
  })

  test('a reservation whose answer was lost is counted, opened and settled once', async () => {
    const it = scene()
    const node = it.node({ ...USD, storeTimeout: '100ms' })
    await started(it, node)
    it.store.health = 'mute'
    const lost = node.reserveAsync('a', { cost: { usd: 400 } })
    await it.world.run(200)
    const receipt = await lost
    expect(receipt.allowed).toBe(true)
    receipt.settle({ usd: 100 })
    it.store.health = 'up'
    await it.world.run(5_000)
    const usage = node.usage('a')
    await it.world.run(100)
    expect((await usage)[0]?.used).toBe(100)
    await it.close()
  })
})

test('a reservation that nothing settles warns once, with the name of its policy', async () => {
  const { it, node } = local(TOKENS)
  const heard = warnings()
  node.reserve('a', { cost: { tokens: 5 }, ttl: '1s' })
  node.reserve('a', { cost: { tokens: 5 }, ttl: '1s' })
  await it.world.run(2_000)
  await new Promise((resolve) => setImmediate(resolve))
  expect(heard.map(({ message }) => message)).toEqual([expect.stringContaining('A reservation of policy "tokens" was not settled')])
})
