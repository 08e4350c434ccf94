import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isPlain } from '../../../src/http/request/plain-path.ts'

/** The expected result, in the slowest and plainest way. */
function isPlainPath(path: string): boolean {
  return /^[\w/\-.~!$&'()*+,=:@]+$/.test(path) && path.startsWith('/') && !/\/[/.]/.test(path) && (path === '/' || !path.endsWith('/'))
}

const segment = fc.oneof(
  fc.stringMatching(/^[\w\-~!$&'()*+,=:@.]*$/),
  fc.constantFrom('a', 'ab', '.', '..', '.a', 'a.', 'a..b', '%', ';', '|', '\\', '#', '?', ' ', '\0', '\n', '\x7f', '[', '"'),
  fc.string({ unit: 'binary', maxLength: 3 }),
  fc.constantFrom('\x80', 'ÿ', 'Ā', 'K', 'ſ', '\ud800', '😀', '\uffff'),
)
const plain = fc.stringMatching(/^(\/[\w\-~!$&'()*+,=:@][\w\-~!$&'()*+,=:@.]{0,20})+$/)

/** Paths of all lengths, including lengths near the limits at which they are read in another way. */
const path = fc
  .record({
    filling: plain,
    length: fc.oneof(fc.nat(40), fc.integer({ min: 500, max: 530 }), fc.integer({ min: 16_370, max: 16_400 }), fc.nat(20_000)),
    start: fc.constantFrom('/', '', '//', '/.', 'a'),
    parts: fc.array(segment, { maxLength: 3 }),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ filling, length, start, parts, at }) => {
    const long = filling.repeat(Math.ceil(length / filling.length)).slice(0, length)
    const cut = Math.round(at * long.length)
    return start + long.slice(0, cut) + parts.join('/') + long.slice(cut)
  })

test('a path is plain where nothing in it can be read in two ways, however long it is', () => {
  const seen = { true: 0, false: 0 }
  fc.assert(
    fc.property(fc.oneof(path, plain, fc.string()), (text) => {
      const wanted = isPlainPath(text)
      seen[`${wanted}`]++
      expect(isPlain(text)).toBe(wanted)
    }),
    { numRuns: 5_000 },
  )
  expect(Math.min(seen.true, seen.false)).toBeGreaterThan(500)
})

test('every character, at the beginning, at even and odd places and at the end of a long path', () => {
  const long = '/segment-name'.repeat(100)
  for (let code = 0; code <= 0x180; code++) {
    const character = String.fromCharCode(code)
    for (const at of [0, 1, 2, 3, 13, 14, 15, 1000, 1001, long.length - 1, long.length]) {
      const text = long.slice(0, at) + character + long.slice(at)
      if (isPlain(text) !== isPlainPath(text)) expect.unreachable(`${code} at ${at}`)
    }
  }
})
