import { describe, expect, it } from 'vitest'
import { bursts, type Load, manyKeys, poisson, SeededRandom, squareWave, together, trace } from '../src/index.ts'

const context = () => ({ random: new SeededRandom('load'), limit: 1000, interval: 10_000, key: 'key' })

/** The requests of a load before a moment. */
function until(load: Load, moment: number): { time: number; key: string }[] {
  const arrivals = load.start(context())
  const list: { time: number; key: string }[] = []
  for (; arrivals.time < moment; arrivals.advance()) list.push({ time: arrivals.time, key: arrivals.key })
  return list
}

function inInterval(list: readonly { time: number }[], index: number): number {
  return list.filter(({ time }) => Math.floor(time / 10_000) === index).length
}

describe('a Poisson load', () => {
  it('has the rate that it was given, and the variance of a Poisson process', () => {
    const list = until(poisson(0.9), 2_000_000)
    const counts = new Array<number>(200).fill(0)
    for (const { time } of list) counts[Math.floor(time / 10_000)] = (counts[Math.floor(time / 10_000)] as number) + 1
    const mean = list.length / 200
    const variance = counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / 199
    expect(mean).toBeGreaterThan(890)
    expect(mean).toBeLessThan(910)
    expect(variance / mean).toBeGreaterThan(0.7)
    expect(variance / mean).toBeLessThan(1.35)
  })

  it('takes more expensive requests less often', () => {
    const { length } = until(poisson(1, { cost: 10 }), 1_000_000)
    expect(length).toBeGreaterThan(9_700)
    expect(length).toBeLessThan(10_300)
  })

  it('draws costs from a range, and offers as many units as with one cost', () => {
    const arrivals = poisson(1, { cost: [1, 50] }).start(context())
    const seen = new Set<number>()
    let units = 0
    for (; arrivals.time < 1_000_000; arrivals.advance()) {
      seen.add(arrivals.cost)
      units += arrivals.cost
    }
    expect([...seen].sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
    expect(units).toBeGreaterThan(95_000)
    expect(units).toBeLessThan(105_000)
  })

  it('follows a course, with silence and all', () => {
    const list = until(
      poisson((position) => (position < 2 ? { times: 0, until: 2 } : { times: 3, until: Number.POSITIVE_INFINITY })),
      40_000,
    )
    expect(inInterval(list, 0) + inInterval(list, 1)).toBe(0)
    expect(inInterval(list, 2)).toBeGreaterThan(2800)
    expect(list[0]?.time).toBeLessThan(20_050)
  })

  it('ends when its course is silence for good', () => {
    const list = until(
      poisson((position) => (position < 1 ? { times: 1, until: 1 } : { times: 0, until: Number.POSITIVE_INFINITY })),
      Number.POSITIVE_INFINITY,
    )
    expect(list.length).toBeGreaterThan(900)
    expect(list.at(-1)?.time).toBeLessThan(10_000)
  })

  it('rejects a course that does not go on', () => {
    expect(() =>
      until(
        poisson(() => ({ times: 1, until: 0 })),
        1,
      ),
    ).toThrow(RangeError)
  })
})

describe('other loads', () => {
  it('a square wave changes at its edges', () => {
    for (const period of [1, 0.3, 1 / 3, 7.1]) {
      const list = until(squareWave({ high: 10, low: 0, period, duty: 0.5, phase: 0.1 }), 100_000)
      const places = list.map(({ time }) => (((time / 10_000 - 0.1) / period) % 1) + (time < 1000 ? 1 : 0))
      expect(Math.max(...places)).toBeLessThan(0.5 + 1e-6)
      expect(list.length).toBeGreaterThan(40_000)
    }
  })

  it('bursts come in volleys', () => {
    const list = until(bursts({ size: 3, every: 0.5, phase: 0.25, width: 6 }), 10_000)
    expect(list.map(({ time }) => time)).toEqual([2500, 2502, 2504, 7500, 7502, 7504])
  })

  it('a trace is replayed, and must be in order', () => {
    const requests = [{ time: 5, key: 'a' }, { time: 5 }, { time: 7, key: 'b' }]
    expect(until(trace(requests), Number.POSITIVE_INFINITY)).toEqual([
      { time: 5, key: 'a' },
      { time: 5, key: 'key' },
      { time: 7, key: 'b' },
    ])
    expect(() => until(trace([{ time: 5 }, { time: 4 }]), 10)).toThrow(RangeError)
  })

  it('several loads are merged in order of time', () => {
    const list = until(together(poisson(1), manyKeys(50, 500), bursts({ size: 2, every: 1 }, { key: 'burst' })), 20_000)
    expect(list.map(({ time }) => time)).toEqual(list.map(({ time }) => time).sort((one, other) => one - other))
    expect(list.filter(({ key }) => key === 'burst').length).toBe(4)
    expect(list.filter(({ key }) => key.startsWith('cold-')).length).toBeGreaterThan(900)
    expect(new Set(list.map(({ key }) => key)).size).toBe(52)
  })
})
