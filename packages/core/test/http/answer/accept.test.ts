import fc from 'fast-check'
import Negotiator from 'negotiator'
import { expect, test } from 'vitest'
import { preferredType } from '../../../src/http/answer/accept.ts'

const TYPES = ['application/problem+json', 'application/json', 'text/html', 'text/plain'] as const
const negotiated = (accept: string) => new Negotiator({ headers: { accept } }).mediaType([...TYPES])

const range = fc.constantFrom(
  ...TYPES,
  'Application/JSON',
  '*/*',
  'text/*',
  'application/*',
  'image/png',
  'text/xml',
  'application/xhtml+xml',
)
const parameters = fc.constantFrom(
  '',
  '',
  '',
  ';q=0',
  ';q=0.5',
  '; q=1',
  ' ;q=0.333',
  ';q=0.9;ext=1',
  ';v=1',
  ';v="a,b;c"',
  ';v="\\"";q=0.1',
)
const field = fc
  .array(
    fc.tuple(range, parameters).map((parts) => parts.join('')),
    { minLength: 1, maxLength: 8 },
  )
  .chain((ranges) => fc.constantFrom(',', ', ', ' , ').map((comma) => ranges.join(comma)))

test('it is what a full negotiation comes to', () => {
  fc.assert(
    fc.property(field, (accept) => {
      fc.pre(accept.length <= 256)
      expect(preferredType(accept, TYPES), accept).toBe(negotiated(accept))
    }),
    { numRuns: 5_000 },
  )
})

test('whatever is sent, it answers', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('"', '\\', ',', ';', '=', 'q', '*', '/', 'text', 'html', '0.5', ' ', '\t', '\ud800'), { maxLength: 600 }),
      (parts) => {
        expect([undefined, ...TYPES]).toContain(preferredType(parts.join(''), TYPES))
      },
    ),
  )
})

test('of a very long field the whole ranges at its beginning count', () => {
  const long = `text/html,${'a/b,'.repeat(4_000)}`
  expect(preferredType(`${long}application/json`, TYPES)).toBe('text/html')
  // A range that is cut off would have another meaning than the whole range.
  const cut = `${'a/b,'.repeat(62)}text/html;q=0`
  expect(cut.length).toBeGreaterThan(256)
  expect(preferredType(`${cut},*/*`, TYPES)).toBeUndefined()
  expect(preferredType(`${'a/b,'.repeat(50)}text/plain,${'x/y,'.repeat(4_000)}`, TYPES)).toBe('text/plain')
  expect(preferredType(`text/html;x="${'a'.repeat(15_000)}", application/json`, TYPES)).toBeUndefined()
})
