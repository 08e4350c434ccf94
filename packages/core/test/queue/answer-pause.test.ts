import { expect, test } from 'vitest'
import { pauseOf } from '../../src/queue/answer-pause.ts'

const SENT = 'Sat, 28 Nov 2026 01:00:00 GMT'
const NOW = Date.parse(SENT)
const SECONDS = NOW / 1_000

type Row = [status: number, fields: Record<string, string>, pause: number]

const retryAfterMs: Row[] = [
  [429, {}, 1_000],
  [503, {}, 0],
  [429, { 'retry-after': '7' }, 7_000],
  [429, { 'retry-after': '2.0' }, 2_000],
  [429, { 'retry-after': '7.25' }, 7_250],
  [429, { 'retry-after': '0.25' }, 250],
  [429, { 'retry-after': ' 3 ' }, 3_000],
  [429, { 'retry-after': '2814, 2' }, 2_814_000],
  [429, { 'retry-after': '2, soon, 9' }, 9_000],
  [429, { 'retry-after': `5, Sat, 28 Nov 2026 01:00:30 GMT` }, 30_000],
  [503, { 'retry-after': '120' }, 120_000],
  [403, { 'retry-after': '120' }, 120_000],
  [200, { 'retry-after': '120' }, 0],
  [429, { 'retry-after': 'Sat, 28 Nov 2026 01:01:00 GMT' }, 60_000],
  [429, { 'retry-after': 'Saturday, 28-Nov-26 01:01:00 GMT' }, 60_000],
  [429, { 'retry-after': 'Sat Nov 28 01:01:00 2026' }, 60_000],
  [429, { 'retry-after': '2026-11-28T01:01:00Z' }, 60_000],
  [429, { 'retry-after': '1m30s' }, 90_000],
  [429, { 'retry-after': String(SECONDS + 60) }, 60_000],
  [429, { 'retry-after': '0' }, 1_000],
  [503, { 'retry-after': '0' }, 0],
  [429, { 'retry-after': 'Sat, 28 Nov 2026 00:00:00 GMT' }, 1_000],
  [503, { 'retry-after': 'Sat, 28 Nov 2026 00:00:00 GMT' }, 0],
  [429, { 'retry-after': 'Sat, 99 Nov 2026 00:00:00 GMT' }, 1_000],
  [429, { 'retry-after': '-5' }, 1_000],
  [429, { 'retry-after': 'NaN' }, 1_000],
  [429, { 'retry-after': 'Infinity' }, 1_000],
  [429, { 'retry-after': '1e9' }, 1_000],
  [429, { 'retry-after': '9'.repeat(400) }, 1_000],
  [429, { 'retry-after': 'soon' }, 1_000],
  [429, { 'retry-after': '' }, 1_000],
  [429, { 'x-retry-after': '4' }, 4_000],
  [429, { 'retry-after-ms': '1500', 'retry-after': '2' }, 1_500],
  [429, { 'retry-after-ms': '-1', 'retry-after': '2' }, 2_000],
]

const fields: Row[] = [
  [200, { ratelimit: '"default";r=0;t=30' }, 30_000],
  [200, { ratelimit: '"default";r=1;t=30' }, 0],
  [200, { ratelimit: '"a";r=0;t=3, "b";r=0;t=40, "c";r=9;t=999' }, 40_000],
  [200, { ratelimit: 'limit=100, remaining=0, reset=50' }, 50_000],
  [200, { ratelimit: 'limit=100, remaining=05, reset=50' }, 0],
  [200, { ratelimit: '"unterminated;r=0' }, 0],
  [200, { 'ratelimit-remaining': '0', 'ratelimit-reset': '9' }, 9_000],
  [403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '12' }, 12_000],
  [200, { 'x-ratelimit-remaining': '0.0', 'x-ratelimit-reset': '12.5' }, 12_500],
  [200, { 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': '12' }, 0],
  [200, { 'x-ratelimit-reset': '12' }, 0],
  [429, { 'x-ratelimit-reset': '12' }, 12_000],
  [429, { 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': '12' }, 1_000],
  [200, { 'x-ratelimit-remaining': '5, 0', 'x-ratelimit-reset': '9, 12' }, 12_000],
  [200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': 'tomorrow' }, 0],
  [429, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(SECONDS + 60) }, 60_000],
  [429, { 'x-ratelimit-reset': String(NOW + 60_000) }, 60_000],
  [429, { 'x-ratelimit-reset': '2026-11-28T01:01:00.000Z' }, 60_000],
  [429, { 'x-ratelimit-reset': '2026-11-28T02:01:00+01:00' }, 60_000],
  [429, { 'x-ratelimit-reset': '2026-11-28 01:01:00' }, 60_000],
  [429, { 'x-ratelimit-reset': '2026-11-28 01:01:00 UTC' }, 60_000],
  [200, { 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': String(SECONDS + 60) }, 60_000],
  [200, { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '6m0s' }, 360_000],
  [200, { 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '20ms' }, 20],
  [200, { 'x-ratelimit-remaining-requests': '7', 'x-ratelimit-reset-requests': '1s' }, 0],
  [200, { 'anthropic-ratelimit-tokens-remaining': '0', 'anthropic-ratelimit-tokens-reset': '2026-11-28T01:01:00Z' }, 60_000],
]

test.each([...retryAfterMs, ...fields])('an answer %i with %j means a pause of %i ms', (status, answer, pause) => {
  expect(pauseOf(status, new Headers(answer), NOW)).toBe(pause)
})

test.each([-300_000, -90_000, 3_600_000])('dates are read by the clock of the answer: ours is off by %i ms', (off) => {
  for (const [status, answer, pause] of [...retryAfterMs, ...fields]) {
    expect(pauseOf(status, new Headers({ ...answer, date: SENT }), NOW + off), JSON.stringify(answer)).toBe(pause)
  }
})

test('an answer without a valid Date is read by our clock', () => {
  const answer = { 'retry-after': 'Sat, 28 Nov 2026 01:01:00 GMT', date: 'yesterday' }
  expect(pauseOf(429, new Headers(answer), NOW + 20_000)).toBe(40_000)
})
