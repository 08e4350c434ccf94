import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compare } from '../src/log/compare.ts'
import { exactFixedWindow } from '../src/log/exact.ts'

const times = (client: string, ...at: number[]): { client: string; time: number }[] => at.map((time) => ({ client, time }))

describe('the exact limiter', () => {
  it('rejects what exceeds the limit in an interval of the epoch', () => {
    const { rejected, clients } = exactFixedWindow([...times('a', 0, 1, 999, 999, 1000), ...times('b', 500, 1500)], 2, 1000)
    expect(rejected).toBe(2)
    expect([...clients]).toEqual([['a', 2]])
  })

  it('allows the limit exactly, on both sides of a boundary', () => {
    expect(exactFixedWindow(times('a', 998, 999, 1000, 1001), 2, 1000).rejected).toBe(0)
  })

  it('does not depend on the order within an interval', () => {
    const arrival = fc.record({ client: fc.constantFrom('a', 'b', 'c'), time: fc.nat(5000) })
    fc.assert(
      fc.property(fc.array(arrival), fc.integer({ min: 1, max: 5 }), (arrivals, limit) => {
        const there = exactFixedWindow(arrivals, limit, 1000)
        const back = exactFixedWindow([...arrivals].reverse(), limit, 1000)
        expect(new Map(back.clients)).toEqual(new Map(there.clients))
        expect(there.rejected).toBe([...there.clients.values()].reduce((sum, n) => sum + n, 0))
      }),
    )
  })
})

describe('the comparison', () => {
  const exact = exactFixedWindow([...times('a', 1, 2, 3, 4), ...times('b', 1, 2, 3)], 2, 1000)

  it('says whether the very same clients were rejected', () => {
    const requests = new Map([
      ['a', 4],
      ['b', 3],
      ['c', 1],
    ])
    const same = compare(
      requests,
      new Map([
        ['a', 1],
        ['b', 1],
      ]),
      new Map([['b', 1]]),
      exact,
    )
    expect(same).toMatchObject({
      sameClients: true,
      clientsRejected: 2,
      exactClientsRejected: 2,
      requestsRejected: 2,
      requestsStoreDown: 1,
      exactRequestsRejected: 3,
    })
    expect(same.clients[0]).toEqual({ client: 'a', requests: 4, rejected: 1, storeDown: 0, exactRejected: 2 })
    // The same numbers of rejections, but for different clients.
    expect(
      compare(
        requests,
        new Map([
          ['a', 2],
          ['c', 1],
        ]),
        new Map(),
        exact,
      ),
    ).toMatchObject({ sameClients: false, clientsRejected: 2, exactClientsRejected: 2 })
  })
})
