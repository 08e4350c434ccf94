import { expect, test } from 'vitest'
import { held } from '../src/report/live-summary.ts'

test('what a check says of a limit is never more than what was allowed', () => {
  expect(held('mallory', 60, [58, 60], true)).toEqual({
    name: 'mallory got no more than the limit',
    ok: true,
    detail: 'at most 60 of 60 in an interval',
  })
  expect(held('mallory', 60, [62, 60], true)).toEqual({
    name: 'mallory got no more than 3.3 % above the limit',
    ok: true,
    detail: 'at most 62 of 60 in an interval',
  })
  expect(held('mallory', 60, [90], false)).toEqual({
    name: 'mallory stayed near the limit',
    ok: false,
    detail: 'at most 90 of 60 in an interval, 50.0 % above',
  })
  // Figures of a busy machine are not judged, so their text must not praise them.
  expect(held('mallory', 60, [62], null).name).toBe('mallory stayed near the limit')
})
