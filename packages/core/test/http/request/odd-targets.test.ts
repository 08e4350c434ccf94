import { describe, expect, test } from 'vitest'
import { paths } from '../../../src/http/request/paths.ts'
import type { RequestReader } from '../../../src/http/request/reader.ts'
import { anyReadings, LONGEST_READ, parseurlReadings } from '../../../src/http/request/readings.ts'
import { type RequestRule, Rules } from '../../../src/http/request/rules.ts'
import { type FakeRequest, fakeReader } from '../fake-request.ts'

/** The `match` of the policies that apply, and the route key. */
function read(
  path: string,
  matches: readonly string[],
  reader: RequestReader<FakeRequest> = fakeReader,
): { counted: string[]; key: string } {
  const policies = matches.map((match): RequestRule<FakeRequest> => ({ name: match, match: paths(match), key: 'all' }))
  const rules = new Rules<FakeRequest>([...policies, { name: 'route', key: 'route' }], reader, { report: () => {} })
  rules.evaluate({ path })
  const counted = rules.applying.slice(0, rules.applied).flatMap((place) => matches[place] ?? [])
  return { counted, key: rules.keys[matches.length] as string }
}

const parseurl: RequestReader<FakeRequest> = { ...fakeReader, readings: parseurlReadings }
const UNCLEAR = 'GET (unclear)'

describe('a target that routers disagree about is counted by the policies of all that they make of it', () => {
  test.each([
    ['/login\\', ['/login']],
    ['/x/..\\login', ['/login']],
    ['/login;x', ['/login']],
    ['/login#', ['/login']],
    ['//host/login', ['/login', '/host/login']],
    ['/a%2flogin', ['/a/login', '/:one']],
    ['/login%3fx', ['/login']],
    ['/a//../login', ['/login', '/a/login']],
  ])('%s', (target, matches) => {
    expect(read(target, [...matches, '/other'])).toEqual({ counted: matches, key: UNCLEAR })
  })
})

describe('where the framework goes by parseurl, a route keeps its key', () => {
  test.each([
    ['/login#', 'GET /login'],
    ['/login/#/x', 'GET /login'],
    ['/cars;color=red', 'GET /cars;color=red'],
    ['//users/1', 'GET /users/:id'],
    ['http://example.org/login', 'GET /login'],
    ['/login\\', 'GET /login%5c'],
    ['/login\\#', 'GET /login'],
    ['/login\\?#', 'GET /login'],
    ['/login\\?x', 'GET /login%5c'],
    ['http://example.org/login\\', 'GET /login'],
    ['http://me:secret@example.org:80/login', 'GET /login'],
    ['http://example.org\\login', UNCLEAR],
  ])('%s: %s', (target, key) => {
    expect(read(target, [], parseurl).key).toBe(key)
  })
})

describe('a target that cannot be read is counted by every policy with a path', () => {
  test.each([
    'http://h?/login',
    'http://h;x/login',
    'http://us@er@h/login',
    'http:///login',
    'file://h/login',
    'login',
    '*/login',
    '',
    `/${'%61'.repeat(1000)}`,
    `/${'\\'.repeat(15_000)}`,
    `/${'/..'.repeat(5_000)}`,
  ])('%j', (target) => {
    expect(read(target, ['/login', '/api/*rest'])).toEqual({ counted: ['/login', '/api/*rest'], key: UNCLEAR })
    expect(read(target, ['POST /login'])).toEqual({ counted: [], key: UNCLEAR })
  })

  test('a long path of plain characters is read like any other', () => {
    const { counted, key } = read(`/API/${'x'.repeat(15_000)}/${'y/'.repeat(200)}z`, ['/login', '/api/*rest', '/api/:id'])
    expect(counted).toEqual(['/api/*rest'])
    expect(key.length).toBeLessThan(1000)
  })

  test('nothing longer is read in several ways', () => {
    for (const readings of [anyReadings, parseurlReadings]) {
      expect(readings(`/${'%'.repeat(LONGEST_READ - 1)}`)).toBeDefined()
      expect(readings(`/${'%'.repeat(LONGEST_READ)}`)).toBeUndefined()
    }
  })
})

test('a path that a middleware has rewritten is counted by the policies of both', () => {
  const reader: RequestReader<FakeRequest> = { ...fakeReader, rewritten: () => '/login' }
  expect(read('/en/login', ['/login', '/en/login', '/other'], reader).counted).toEqual(['/login', '/en/login'])
})

test('a policy that covers the pattern of the matched route applies whatever the target is', () => {
  const patterns = ['/users/:name', '/users/me']
  const reader: RequestReader<FakeRequest> = {
    ...fakeReader,
    pattern: (request) => request.route,
    samples: (pattern) => [pattern.replace(/:\w+/, '%01')],
  }
  const rules = new Rules<FakeRequest>(
    patterns.map((match) => ({ name: match, match: paths(match), key: 'all' })),
    reader,
    { report: () => {} },
  )
  const counted = (request: FakeRequest) => (rules.evaluate(request) ? rules.applying.slice(0, rules.applied) : [])
  expect(counted({ path: '/odd', route: '/users/:id' })).toEqual([0])
  // The same path leads to another route, e.g. because of its host.
  expect(counted({ path: '/odd', route: '/users/me' })).toEqual([0, 1])
  expect(counted({ path: '/odd' })).toEqual([])
  expect(counted({ path: '/odd', route: '/users/:id' })).toEqual([0])
})
