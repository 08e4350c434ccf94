import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LogRecord } from '../src/log/record.ts'
import { pathOf, schedule } from '../src/log/schedule.ts'
import { busiestStart } from '../src/log/window.ts'

const record = (time: number, more: Partial<LogRecord> = {}): LogRecord => ({
  time,
  client: 'a',
  method: 'GET',
  target: '/',
  status: 200,
  ...more,
})

describe('the schedule of a replay', () => {
  it('sends every request in its own interval, in the order of the log', () => {
    const minute = 60_000
    const from = 1_000 * minute
    fc.assert(
      fc.property(fc.array(fc.nat(299), { maxLength: 300 }), fc.constantFrom(1, 7, 60, 120), (seconds, speed) => {
        const records = seconds.sort((a, b) => a - b).map((second) => record(from + second * 1000))
        const planned = schedule(records, from, minute, speed)
        expect(planned).toHaveLength(records.length)
        for (const [i, { at, logged }] of planned.entries()) {
          expect(Math.floor(at / (minute / speed))).toBe(Math.floor((logged - from) / minute))
          if (i > 0) expect(at).toBeGreaterThanOrEqual(planned[i - 1]?.at ?? 0)
        }
      }),
    )
  })

  it('spreads the requests of one second over it', () => {
    const at = schedule([record(0), record(0), record(0), record(0)], 0, 60_000, 60).map((request) => request.at)
    expect(new Set(at).size).toBe(4)
    expect(Math.max(...at) - Math.min(...at)).toBeLessThan(1000 / 60)
  })

  it('sends what no framework would take as something that all take', () => {
    const sent = (more: Partial<LogRecord>): unknown => {
      const [request] = schedule([record(0, more)], 0, 60_000, 60)
      return `${request?.method} ${request?.path}`
    }
    expect(sent({ method: undefined })).toBe('GET /')
    expect(sent({ method: 'CONNECT', target: 'example.com:443' })).toBe('GET /example.com:443')
    expect(sent({ method: 'get' })).toBe('GET /')
    expect(sent({ method: 'PROPFIND' })).toBe('PROPFIND /')
    expect(sent({ target: 'http://example.com/x?y' })).toBe('GET /x?y')
  })

  it('makes a path of any target that can be sent and decoded', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000 }), (bytes) => {
        const path = pathOf(Buffer.from(bytes).toString('latin1'))
        expect(path).toMatch(/^\/[\x21-\x7e]*$/)
        expect(() => decodeURIComponent(path)).not.toThrow()
        expect(path.length).toBeLessThan(15_000)
      }),
    )
    expect(pathOf('/%zz')).toBe('/%25zz')
    expect(pathOf('/a%20b')).toBe('/a%20b')
  })
})

describe('the busiest stretch', () => {
  it('is the one with the most requests, the earliest of several', () => {
    const counts = new Map([
      [1, 5],
      [2, 1],
      [10, 3],
      [11, 3],
      [30, 6],
    ])
    expect(busiestStart(counts, 1)).toBe(30)
    expect(busiestStart(counts, 2)).toBe(1)
    expect(busiestStart(counts, 100)).toBe(1)
    expect(busiestStart(new Map(), 2)).toBeUndefined()
  })

  it('holds as many as the best of all stretches', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.nat(40).map(String), fc.integer({ min: 1, max: 9 })),
        fc.integer({ min: 1, max: 10 }),
        (counted, width) => {
          const counts = new Map(Object.entries(counted).map(([ordinal, n]) => [Number(ordinal), n]))
          const sumFrom = (start: number): number =>
            [...counts].reduce((sum, [ordinal, n]) => sum + (ordinal >= start && ordinal < start + width ? n : 0), 0)
          const best = Math.max(0, ...Array.from({ length: 60 }, (_, i) => sumFrom(i - 12)))
          const start = busiestStart(counts, width)
          expect(start === undefined ? 0 : sumFrom(start)).toBe(best)
        },
      ),
    )
  })
})
