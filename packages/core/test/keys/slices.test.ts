import { expect, onTestFinished, test, vi } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import { KeyTable } from '../../src/keys/key-table.ts'
import { Slices } from '../../src/keys/slices.ts'
import type { Throttler } from '../../src/throttler/throttler.ts'
import { offer, scene } from '../support/nodes.ts'

const MANY = 12_000

function seen(throttler: Throttler, key: string): object {
  const { allowed, remaining, retryAfterMs, resetAfterMs } = throttler.peek(key, 1)
  return { allowed, remaining, retryAfterMs: Math.round(1e6 * retryAfterMs), resetAfterMs: Math.round(1e6 * resetAfterMs) }
}

test('each slot in use is visited once, some thousands in a turn, and again where it is begun anew', () => {
  const table = new KeyTable(1e6)
  for (let i = 0; i < MANY; i++) table.add(`${i}`)
  table.remove(table.find('17'))
  const turns: (() => void)[] = []
  const visited: number[] = []
  let ended = 0
  const slices = new Slices(
    table,
    (run) => turns.push(run),
    (slot) => visited.push(slot),
    () => ended++,
  )
  slices.begin()
  expect([visited.length, turns.length]).toEqual([4_999, 1])
  turns.shift()?.()
  slices.begin()
  expect(turns).toHaveLength(1)
  for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
    const before = visited.length
    turn()
    expect(visited.length - before).toBeLessThanOrEqual(5_000)
  }
  expect([visited.length, ended]).toEqual([9_999 + MANY - 1, 1])
  slices.begin()
  slices.finish()
  turns.shift()?.()
  expect([visited.length, ended]).toEqual([9_999 + 2 * (MANY - 1), 2])
})

test('between the slices of changed limits each bucket is decided about as it is after them', async () => {
  const { world, node, close } = scene()
  const policy = { name: 'api', interval: 10_000, algorithm: tokenBucket({ burst: 40 }), coordination: 'local' } as const
  const rule = (limit: number) => [{ ...policy, limit }]
  const many = node(rule(20))
  const few = node(rule(20))
  const [first, last] = ['first', `key ${MANY - 1}`] as const
  for (const key of [first, last]) offer(few, key, 30)
  offer(many, first, 30)
  for (let i = 0; i < MANY; i++) many.check(`key ${i}`)
  offer(many, last, 29)
  await world.run(5_000)
  const before = many.peek(last, 1).remaining
  for (const throttler of [many, few]) throttler.update(rule(200))
  expect(many.peek(last, 1).remaining).toBe(before)
  // There was no turn of the event loop, so most keys were not visited yet.
  for (const [limit, after] of [
    [5, 1_000],
    [100, 500],
    [10, 700],
  ] as const) {
    world.stall(after)
    for (const throttler of [many, few]) throttler.update(rule(limit))
  }
  world.stall(300)
  for (const key of [first, last]) expect(seen(many, key)).toEqual(seen(few, key))
  expect(offer(many, last, 60)).toBe(offer(few, last, 60))
  await world.run(100)
  for (const key of [first, last]) expect(seen(many, key)).toEqual(seen(few, key))
  expect(offer(many, first, 60)).toBe(offer(few, first, 60))
  for (let i = 0; i < 20; i++) for (const throttler of [many, few]) throttler.update(rule(10 + i))
  for (const key of [first, last]) expect(seen(many, key)).toEqual(seen(few, key))
  await close()
})

test.each([
  ['windows', { interval: '1h' }],
  ['slots', { algorithm: concurrency() }],
] as const)('a raised limit of %s taken ahead counts for each key from its next request, whichever is visited later', async (_, what) => {
  const { world, node, close } = scene()
  const rule = (limit: number) => [{ name: 'api', coordination: 'leased', limit, ...what } as const]
  const throttler = node(rule(1))
  throttler.start()
  await world.run(1_100)
  const ask = async (key: string): Promise<boolean> => {
    let allowed: boolean | undefined
    void throttler.checkAsync(key).then((decision) => {
      allowed = decision.allowed
    })
    for (let waited = 0; allowed === undefined && waited < 500; waited += 5) await world.run(5)
    return allowed === true
  }
  for (let i = 0; i < MANY; i++) throttler.checkAsync(`key ${i}`).catch(() => {})
  await world.run(500)
  const last = `key ${MANY - 1}`
  expect(await ask(last)).toBe(false)
  throttler.update(rule(3))
  expect([await ask(last), await ask(last), await ask(last)]).toEqual([true, true, false])
  await close()
})

test.each([
  ['buckets', (limit: number) => ({ limit, interval: '1h', algorithm: tokenBucket({ burst: 40 }), coordination: 'local' }) as const],
  [
    'buckets that warm up',
    (limit: number) => ({ limit, interval: '1h', algorithm: tokenBucket({ warmUp: '1m' }), coordination: 'local' }) as const,
  ],
  ['windows taken ahead', (limit: number) => ({ limit, interval: '1h', coordination: 'leased' }) as const],
  ['slots taken ahead', (limit: number) => ({ limit, algorithm: concurrency(), coordination: 'leased' }) as const],
])('update() visits the keys of %s in slices', async (_, rule) => {
  const { world, node, close } = scene()
  const throttler = node([rule(20)])
  throttler.start()
  await world.run(1_100)
  throttler.checkAsync('k').catch(() => {})
  await world.run(100)
  const begin = vi.spyOn(Slices.prototype, 'begin')
  onTestFinished(() => begin.mockRestore())
  throttler.update([rule(30)])
  expect(begin).toHaveBeenCalled()
  await close()
})
