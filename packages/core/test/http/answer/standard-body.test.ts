import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { changed, type Decision } from '../../../src/decide/decision.ts'
import { preferredForm, standardBody } from '../../../src/http/answer/problem-details.ts'
import { adapterOf } from '../../../src/throttler/adapter-side.ts'
import { createThrottler } from '../../../src/throttler/throttler.ts'
import { ManualTime } from '../manual-time.ts'

const rejected = () => {
  const throttler = createThrottler({
    policies: [
      { name: 'a', limit: 1, interval: '1m' },
      { name: 'b', limit: 5, interval: '1m' },
    ],
    clock: new ManualTime(0),
  })
  adapterOf(throttler).decide(['k', 'k'], [1, 1])
  return adapterOf(throttler).decide(['k', 'k'], [1, 1])
}

test('problem details name the policies that rejected', () => {
  const body = standardBody('json', rejected(), 429, 12)
  expect(body.type).toBe('application/problem+json')
  expect(JSON.parse(body.text)).toEqual({
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
    status: 429,
    detail: 'Too many requests. Try again in 12 seconds.',
    'violated-policies': ['a'],
  })
})

describe('the problem tells why', () => {
  const problem = (decision: Decision) => JSON.parse(standardBody('json', decision, 429, 12).text)
  const alone = (options: object = {}) =>
    createThrottler({ policies: [{ name: 'a', limit: 1, interval: '1m', cooldown: '1h' }], clock: new ManualTime(0), ...options })

  test('a cooldown follows from a quota that was exceeded', () => {
    const throttler = alone()
    for (let i = 0; i < 3; i++) throttler.check('k')
    expect(throttler.check('k').reason).toBe('cooldown')
    expect(problem(throttler.check('k')).type).toMatch(/#quota-exceeded$/)
  })

  test('who was blocked by hand was found abnormal', () => {
    const throttler = alone()
    throttler.block('k', '1h')
    expect(problem(throttler.check('k'))).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
      title: 'Request not satisfied due to detection of abnormal request pattern',
      'violated-policies': ['a'],
    })
  })

  test('a table that is full is no fault of the client', () => {
    const throttler = alone({ maxKeys: 1, overflow: 'reject' })
    throttler.check('k')
    expect(problem(throttler.check('l'))).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: 'Request cannot be satisfied due to temporary server capacity constraints',
    })
  })

  test('nor is a store that is away', () => {
    const share = alone().check('k')
    const rejected: Decision = changed(share, { allowed: false, reason: 'storeDown' })
    expect(problem(rejected).type).toMatch(/#temporary-reduced-capacity$/)
  })
})

describe('the body suits the client', () => {
  test.each<[string | undefined, string]>([
    [undefined, 'json'],
    ['*/*', 'json'],
    ['', 'json'],
    ['application/json', 'json'],
    ['application/problem+json', 'json'],
    ['application/json, text/plain, */*', 'json'],
    ['application/*', 'json'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8', 'html'],
    ['text/plain', 'text'],
    ['text/*', 'html'],
    ['text/plain;q=0.5, application/json;q=0.4', 'text'],
    ['image/png', 'text'],
    ['application/json;q=0', 'text'],
    ['application/problem+json;q=0, application/json;q=0, */*', 'html'],
    ['nonsense', 'text'],
  ])('%s: %s', (accept, form) => {
    expect(preferredForm(accept)).toBe(form)
    // The second call answers from memory.
    expect(preferredForm(accept)).toBe(form)
  })

  test('whatever it sends', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (accept) => {
        expect(['json', 'html', 'text']).toContain(preferredForm(accept))
      }),
    )
  })
})
