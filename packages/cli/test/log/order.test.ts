import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InOrder, Spread } from '../../src/log/in-order.ts'
import type { LogRecord } from '../../src/log/record.ts'

function record(time: number, coarse = true): LogRecord {
  return {
    time,
    coarse,
    client: 'x',
    clientField: '',
    method: 'GET',
    target: '/',
    valid: true,
    duration: undefined,
    status: undefined,
    field: () => undefined,
  }
}

function ordered(times: readonly number[], held: number): { readonly times: readonly number[]; readonly late: number } {
  const order = new InOrder(held)
  const out: LogRecord[] = []
  for (const time of times) order.add(record(time), out)
  order.end(out)
  return { times: out.map(({ time }) => time), late: order.late }
}

describe('records out of order', () => {
  it('are put in order as far as the bound reaches, and the others are left out and counted', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 80 }), fc.integer({ min: 1, max: 12 }), (times, held) => {
        const result = ordered(times, held)
        expect(result.times).toEqual(result.times.toSorted((one, other) => one - other))
        expect(result.times.length + result.late).toBe(times.length)
        if (times.length <= held) expect(result.late).toBe(0)
      }),
    )
  })

  it('does not lose all others to one that is far ahead', () => {
    expect(ordered([1, 2, 9_999_999, 3, 4, 5, 6, 7], 3)).toEqual({ times: [1, 2, 3, 4, 5, 6, 7, 9_999_999], late: 0 })
  })
})

describe('records of whole seconds', () => {
  function spread(records: readonly LogRecord[]): readonly number[] {
    const spreading = new Spread()
    const out: LogRecord[] = []
    for (const one of records) spreading.add(one, out)
    spreading.end(out)
    return out.map(({ time }) => time)
  }

  it('are spread over their seconds', () => {
    expect(spread([record(1000), record(1000), record(3000)])).toEqual([1250, 1750, 3500])
  })

  it('go with those that have finer times, in order', () => {
    const times = spread([record(1000), record(1000), record(1100, false), record(2000, false)])
    expect(times.map(Math.floor)).toEqual([1100, 1166, 1500, 2000])
  })

  it('are never earlier than others, however many there are', () => {
    const many = Array.from({ length: 200_000 }, () => record(5000))
    const times = spread([...many, record(6000)])
    expect(times).toHaveLength(200_001)
    expect(times.every((time, i) => i === 0 || time >= (times[i - 1] as number))).toBe(true)
    expect(times.at(-2)).toBeLessThanOrEqual(6000)
  })
})
