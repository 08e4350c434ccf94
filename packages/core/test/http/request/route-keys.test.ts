import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { countedMethod, foldPath, normalizePath, pathOf, withoutDots } from '../../../src/http/request/route-key.ts'

const fold = (target: string) => foldPath(withoutDots(normalizePath(pathOf(target))))

describe('spellings of one path', () => {
  test.each([
    ['/users', '/users/'],
    ['/users', '//users'],
    ['/users', '/users//'],
    ['/users', '/%75sers'],
    ['/users', '/%55sers'],
    ['/users', '/USERS'],
    ['/users', '/users?page=2'],
    ['/users', '/users#top'],
    ['/users', 'http://Example.ORG/users'],
    ['/users', 'https://user:secret@example.org:8443/users?x=/y'],
    ['/users', '/a/../users'],
    ['/users', '/./users/.'],
    ['/users', '/../../users'],
    ['/users', '/%2e%2E/users'],
    ['/', ''],
    ['/', '//'],
    ['/', 'http://example.org'],
    ['/', 'http://example.org?x=1/2'],
    ['/*', '*'],
    ['/caf%c3%a9', '/café'],
    ['/caf%c3%a9', '/caf%C3%A9'],
    ['/a%20b', '/a b'],
    ['/~jane', '/%7Ejane'],
  ])('%s is also written %s', (path, spelling) => {
    // Node.js passes the octets of a target as Latin-1.
    const octets = Buffer.from(spelling, 'utf8').toString('latin1')
    expect(withoutDots(normalizePath(pathOf(octets)))).toBe(path)
  })

  test('an escaped slash is no delimiter', () => {
    expect(normalizePath('/a%2Fb')).toBe('/a%2fb')
  })

  test('case counts when asked for', () => {
    expect(normalizePath('/Users/%6A', true)).toBe('/Users/j')
  })
})

describe('segments that are values become a placeholder', () => {
  test.each([
    ['/users/42', '/users/:id'],
    ['/users/42/orders/7', '/users/:id/orders/:id'],
    ['/users/0b4cf3a6-1f6e-4a6e-9a0e-6b1f6f2a3c4d', '/users/:id'],
    ['/commits/da39a3ee5e6b4b0d3255bfef95601890afd80709', '/commits/:id'],
    ['/commits/9f86d081', '/commits/:id'],
    ['/objects/507f1f77bcf86cd799439011', '/objects/:id'],
    ['/objects/abcdefabcdefabcdef', '/objects/:id'],
    ['/days/2024-01-31', '/days/:id'],
    ['/at/59.33,18.07', '/at/:id'],
    ['/u/01ARZ3NDEKTSV4RRFFQ69G5FAV', '/u/:id'],
    ['/u/V1StGXR8_Z5jdHi6B-myT', '/u/:id'],
    ['/customers/cus_NffrFeUfNV2Hib', '/customers/:id'],
    ['/users/user-1234', '/users/:id'],
    ['/files/98765.json', '/files/:id'],
    ['/mail/jane@example.org', '/mail/:id'],
    ['/mail/jane%40example.org', '/mail/:id'],
    [`/t/${'x'.repeat(65)}`, '/t/:id'],
  ])('%s is %s', (path, folded) => {
    expect(fold(path)).toBe(folded)
  })

  test.each([
    '/',
    '/v1/users',
    '/oauth2/token',
    '/api/v2.1x/search',
    '/md5',
    '/ipv6',
    '/feedback',
    '/.well-known/openid-configuration',
    '/static/logo.png',
    '/e-mail',
  ])('%s stays as it is', (path) => {
    expect(fold(path)).toBe(path)
  })

  test('what lies very deep shares one key', () => {
    expect(fold('/a'.repeat(40))).toBe(`${'/a'.repeat(12)}/*`)
  })
})

describe('whatever a client sends', () => {
  const hostile = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.string({ unit: fc.constantFrom('/', '.', '%', '2', 'e', 'f', 'A', '\\', '?', '#', ':', '\u00e9', '\ud800'), maxLength: 60 }),
    fc.webUrl({ withQueryParameters: true, withFragments: true }),
  )

  test('the key is short, printable and starts with a slash', () => {
    fc.assert(
      fc.property(hostile, (target) => {
        const key = fold(target)
        expect(key).toMatch(/^\/[\x21-\x7e]*$/)
        expect(key.length).toBeLessThanOrEqual(13 * 65)
        expect(key).not.toMatch(/\/\//)
      }),
      { numRuns: 2000 },
    )
  })

  test('normalising again changes nothing', () => {
    fc.assert(
      fc.property(hostile, fc.boolean(), (target, caseSensitive) => {
        const once = withoutDots(normalizePath(pathOf(target), caseSensitive))
        expect(withoutDots(normalizePath(once, caseSensitive))).toBe(once)
      }),
      { numRuns: 2000 },
    )
  })

  test('a path of 64 KB takes no time', () => {
    // The test measures CPU time, because other processes may use the processor meanwhile.
    const started = process.cpuUsage()
    for (const unit of ['/a', '/..', '//', '%41', '%', '/1', '\u00ff', '/a@']) fold(`/${unit.repeat(32_768)}`)
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(1000)
  })
})

test('HEAD counts as GET, and rare methods together', () => {
  expect(countedMethod('HEAD')).toBe('GET')
  expect(countedMethod('POST')).toBe('POST')
  expect(countedMethod('BREW')).toBe(countedMethod('X'.repeat(50)))
})
