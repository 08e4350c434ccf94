import { expect, test } from 'vitest'
import { Flights, type Flying } from '../../src/central/flights.ts'
import { tokenBucket } from '../../src/index.ts'
import type { Question } from '../../src/store/contract.ts'
import { allowed, ask, CENTRAL, started } from '../support/central.ts'
import { scene } from '../support/nodes.ts'

test('a key of which more requests than lanes got no answer is decided about by the store again, which counts each of them once', async () => {
  const it = scene()
  const node = it.node({ ...CENTRAL, limit: 100, interval: 60_000 })
  await started(it, node)
  it.store.storeTimeout = Number.POSITIVE_INFINITY
  it.store.health = 'hanging'
  const lost = Array.from({ length: 40 }, () => node.checkAsync('k'))
  await it.world.run(100)
  it.store.health = 'up'
  expect((await Promise.all(lost)).every(({ allowed }) => allowed)).toBe(true)
  await it.world.run(3_000)
  const before = it.store.decided.length
  expect(allowed(await ask(it, node, 'k', 10))).toBe(10)
  expect(it.store.decided.slice(before).map(({ request }) => request.questions[0]?.kind)).toEqual(Array(10).fill('take'))
  const usage = node.usage('k')
  await it.world.run(20)
  expect((await usage)[0]?.used).toBe(50)
  await it.close()
})

test('a rejected request that the store counts later than anybody waits for it is given back', async () => {
  const it = scene()
  const node = it.node({ ...CENTRAL, limit: 100, interval: 60_000, failMode: 'closed' })
  await started(it, node)
  await ask(it, node, 'k', 1)
  it.store.storeTimeout = Number.POSITIVE_INFINITY
  it.store.roundTrip = 2_000
  const late = node.checkAsync('k')
  await it.world.run(1_900)
  expect((await late).allowed).toBe(false)
  await it.world.run(500)
  it.store.roundTrip = 0
  await it.world.run(3_000)
  const usage = node.usage('k')
  await it.world.run(20)
  expect((await usage)[0]?.used).toBe(1)
  await it.close()
})

test('a request for several keys that finds no lane free at all of them goes once one is', () => {
  const sent: Flying[] = []
  const flights = new Flights<Flying>((item) => sent.push(item))
  const of = (...keys: string[]): Flying => ({
    questions: keys.map((key) => ({ policy: { id: key }, key }) as Question),
    storeTimeout: 50,
    gone: false,
    lane: -1,
    owed: false,
  })
  const begun = (key: string): Flying[] =>
    Array.from({ length: 30 }, () => {
      const item = of(key)
      expect(flights.begin(item)).toBe(true)
      return item
    })
  const low = begun('a')
  const high = begun('b')
  for (const item of [...low.splice(15), ...high.splice(0, 15)]) flights.end(item)
  const all = of('c', 'a', 'b')
  expect(flights.begin(all)).toBe(false)
  flights.end(low[3] as Flying)
  expect(sent).toEqual([all])
  expect(all.lane).toBe(3)
})

test('requests that find no lane of their key in time are decided without the store, and those of other keys by it', async () => {
  const it = scene()
  it.store.roundTrip = 20
  // Requests for a key that warms up are decided one by one.
  const algorithm = tokenBucket({ warmUp: 60_000 })
  const node = it.node({ ...CENTRAL, algorithm, limit: 1_000, interval: 60_000, failMode: 'closed' })
  await started(it, node)
  const hot = Promise.all(Array.from({ length: 200 }, () => node.checkAsync('hot')))
  await it.world.run(52)
  const other = node.checkAsync('other')
  await it.world.run(40)
  expect((await other).allowed).toBe(true)
  expect(allowed(await hot)).toBe(60)
  await it.close()
})
