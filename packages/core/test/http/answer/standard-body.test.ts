import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { preferredForm, standardBody } from '../../../src/http/answer/problem-details.ts'
import { createThrottler } from '../../../src/throttler/throttler.ts'
import { ManualTime } from '../manual-time.ts'

const refused = () => {
  const throttler = createThrottler({
    policies: [
      { name: 'a', limit: 1, interval: '1m' },
      { name: 'b', limit: 5, interval: '1m' },
    ],
    clock: new ManualTime(0),
  })
  throttler.decide(['k', 'k'], [1, 1])
  return throttler.decide(['k', 'k'], [1, 1])
}

test('problem details name the policies that refused', () => {
  const body = standardBody('json', refused(), 429, 12)
  expect(body.type).toBe('application/problem+json')
  expect(JSON.parse(body.text)).toEqual({
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
    status: 429,
    detail: 'Too many requests. Try again in 12 seconds.',
    'violated-policies': ['a'],
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
    // Again, from memory.
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
