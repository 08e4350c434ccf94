import fc from 'fast-check'
import { pathToRegexp } from 'path-to-regexp'
import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../../src/decide/policy.ts'
import type { KeyOption, KeySource, MatchOption } from '../../../src/decide/request-options.ts'
import { address, header } from '../../../src/decide/request-rule.ts'
import { PathIndex } from '../../../src/http/request/path-index.ts'
import { paths } from '../../../src/http/request/paths.ts'
import { type RequestRule, Rules } from '../../../src/http/request/rules.ts'
import type { WeirError } from '../../../src/report/errors.ts'
import { createThrottler } from '../../../src/throttler/throttler.ts'
import { type FakeRequest, fakeReader } from '../fake-request.ts'

function rulesOf(list: RequestRule<FakeRequest>[]) {
  const reported: WeirError[] = []
  return { rules: new Rules(list, fakeReader, { report: (error) => reported.push(error) }), reported }
}

/** The key of one request under one key option. */
function keyOf(key: KeyOption<FakeRequest>, request: FakeRequest): string | undefined {
  const { rules } = rulesOf([{ key }])
  rules.evaluate(request)
  return rules.keys[0]
}

function applies(match: MatchOption<FakeRequest>, request: FakeRequest): boolean {
  return rulesOf([{ key: 'all', match }]).rules.evaluate(request) === true
}

describe('keys', () => {
  test('a route without a pattern is the path, whose identifiers stand for all', () => {
    expect(keyOf('route', { path: '/users/42?x=1' })).toBe('GET /users/:id')
  })

  test('the pattern of a matched route comes before the path', () => {
    expect(keyOf('route', { path: '/users/jane', route: '/users/:name' })).toBe('GET /users/:name')
  })

  test('a group of requests is a key without the method', () => {
    expect(keyOf('route', { method: 'POST', route: '(not found)' })).toBe('(not found)')
  })

  test('HEAD shares the key of GET', () => {
    expect(keyOf('route', { method: 'HEAD', path: '/a' })).toBe(keyOf('route', { path: '/a' }))
  })

  test('a header that is missing or empty is replaced by the address', () => {
    const byKey = header('X-Api-Key')
    expect(keyOf(byKey, { headers: { 'x-api-key': 'k1' }, ip: '192.0.2.1' })).toBe('k1')
    expect(keyOf(byKey, { headers: { 'x-api-key': '' }, ip: '192.0.2.1' })).toBe('\u0001192.0.2.1')
    expect(keyOf(byKey, { ip: '192.0.2.1' })).toBe('\u0001192.0.2.1')
  })

  test('address() accepts a header or a function', () => {
    expect(address(header('X-Client'))).toEqual({ header: 'x-client', address: true })
    const from = () => '192.0.2.1'
    expect(address(from)).toEqual({ address: from })
    for (const wrong of [undefined, null, 'x-client', 'ip', {}, { header: 'a b' }, { address: 'x' }])
      expect(() => address(wrong as never)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  })

  const inHeader = address(header('x-client'))
  const returned = address<FakeRequest>(({ headers }) => headers?.['x-client'])
  const returnedLater = address<FakeRequest>(async ({ headers }) => headers?.['x-client'])

  test.each([
    ['a header', inHeader],
    ['a function', returned],
    ['an async function', returnedLater],
  ])('address() reads %s as "ip" reads the address of a connection', async (_, source) => {
    const key = async (text: string, option: KeyOption<FakeRequest> = source) => {
      const { rules, reported } = rulesOf([{ key: option }])
      const read = rules.evaluate({ ip: '198.51.100.1', headers: { 'x-client': text } })
      const keys = typeof read === 'object' ? ((await read)?.keys ?? []) : rules.keys
      expect(reported).toEqual([])
      return keys[0]
    }
    for (const text of [
      '192.0.2.7',
      '::ffff:192.0.2.7',
      '::FFFF:c000:207',
      '192.0.2.7:8080',
      ' 192.0.2.7 ',
      '64:ff9b::192.0.2.7',
      '0xc0.0.2.7',
    ])
      expect(await key(text), text).toBe('192.0.2.7')
    for (const text of ['2001:db8:1:2::1', '[2001:DB8:1:2:3::]:443', '2001:0db8:0001:0002::%eth0'])
      expect(await key(text), text).toBe('2001:db8:1:2::/64')
    for (const text of ['192.0.2.7, 192.0.2.8', 'nobody', 'for=192.0.2.7', 'unknown', '1'.repeat(5000)])
      expect(await key(text), text).toBe('\u0001198.51.100.1')
    expect(await key('192.0.2.7:1', ['all', source, 'ip'])).toBe('all|192.0.2.7|198.51.100.1')
  })

  test.each([[undefined], [null], [''], [7], [{}]])('a function in address() that returns %j is reported once', (answer) => {
    const { rules, reported } = rulesOf([{ key: address(() => answer as never) }])
    for (let i = 0; i < 2; i++) rules.evaluate({ ip: '198.51.100.1' })
    expect(rules.keys).toEqual(['\u0001198.51.100.1'])
    expect(reported.map(({ code, message }) => [code, message.includes('Return an address.')])).toEqual([['WEIR_INVALID_KEY', true]])
  })

  test.each([
    ['cf-connecting-ip', 'Use key: address(header("cf-connecting-ip"))'],
    ['X-Real-IP', 'Use key: address(header("x-real-ip"))'],
    ['true-client-ip', 'address(header('],
    ['x-azure-clientip', 'address(header('],
    ['cf-connecting-ipv6', 'address(header('],
    ['x-forwarded-for', 'Use key: "ip", and have your framework trust your proxy'],
  ])('counting by the text of "%s" is reported once, with what to use instead', (name, step) => {
    const { rules, reported } = rulesOf([{ name: 'a', key: ['route', header(name)] }])
    for (let i = 0; i < 2; i++) rules.evaluate({ headers: { [name.toLowerCase()]: '2001:db8::1' } })
    expect(reported.map(({ code }) => code)).toEqual(['WEIR_WARN_UNBOUNDED_KEY'])
    expect(reported[0]?.message).toContain(step)
  })

  test.each([header('x-api-key'), header('x-membership'), header('x-zip'), address(header('x-real-ip'))])(
    'counting by %j is not reported',
    (key) => {
      const { rules, reported } = rulesOf([{ key }])
      rules.evaluate({ ip: '192.0.2.1', headers: { [key.header]: '192.0.2.1' } })
      expect(reported).toEqual([])
    },
  )

  test('nobody can take the name of an address that stands in for a key', () => {
    const byUser = (request: FakeRequest) => request.user as string
    const standIn = keyOf(byUser, { ip: '192.0.2.1' })
    for (const user of ['192.0.2.1', '\u0001192.0.2.1', standIn]) expect(keyOf(byUser, { user, ip: '192.0.2.9' })).not.toBe(standIn)
  })

  test.each([undefined, null, '', Number.NaN, true, {}, ['a'], Symbol('s')])(
    'a key function that returns %s falls back to the address, with one report',
    (user) => {
      const { rules, reported } = rulesOf([{ name: 'user', key: (request) => request.user as string }])
      for (let i = 0; i < 3; i++) {
        rules.evaluate({ user, ip: '::ffff:192.0.2.1' })
        expect(rules.keys[0]).toBe('\u0001192.0.2.1')
      }
      expect(reported).toHaveLength(1)
      expect(reported[0]).toMatchObject({ code: 'WEIR_INVALID_KEY', message: expect.stringContaining('"user"') })
    },
  )

  test('a key function that throws falls back to the address, with one report', () => {
    const { rules, reported } = rulesOf([{ key: (request) => (request.user as { id: string }).id }])
    rules.evaluate({ ip: '192.0.2.1' })
    rules.evaluate({ ip: '192.0.2.1' })
    expect(rules.keys[0]).toBe('\u0001192.0.2.1')
    expect(reported).toHaveLength(1)
  })

  test('an address that cannot be read shares one key', () => {
    const failing = {
      ...fakeReader,
      ip: () => {
        throw new Error('trust function')
      },
    }
    const rules = new Rules([{ key: 'ip' }], failing, { report: () => {} })
    rules.evaluate({})
    expect(rules.keys[0]).toBe('unknown')
  })

  test('two different lists of values never give one key', () => {
    const value = fc.oneof(
      fc.string({ minLength: 1 }),
      fc.string({ unit: fc.constantFrom('|', '\\', 'a', '\u0001'), minLength: 1, maxLength: 5 }),
      fc.string({ minLength: 250, maxLength: 400 }),
    )
    const tuple = fc.array(value, { minLength: 1, maxLength: 4 })
    const read = (values: string[]) =>
      keyOf(
        values.map(
          (_, index): KeySource<FakeRequest> =>
            (request) =>
              (request.user as string[])[index],
        ),
        { user: values },
      )
    fc.assert(
      fc.property(tuple, tuple, (one, other) => {
        if (JSON.stringify(one) === JSON.stringify(other)) expect(read(one)).toBe(read(other))
        // A policy has one key option, so only lists of one length meet in its table.
        else if (one.length === other.length) expect(read(one)).not.toBe(read(other))
      }),
      { numRuns: 3000 },
    )
  })

  test.each(['/search?q=1', 'https://example.org/?a', 'k'.repeat(257)])('a raw key such as %s is used, with one report', (user) => {
    const { rules, reported } = rulesOf([{ name: 'search', key: (request) => request.user as string }])
    for (let i = 0; i < 3; i++) rules.evaluate({ user })
    expect(reported).toMatchObject([{ code: 'WEIR_WARN_UNBOUNDED_KEY', message: expect.stringContaining('"search"') }])
  })

  test.each(['2001:db8::1', '::ffff:192.0.2.7', 'fe80::1%eth0'])('a function that returns an address such as %s is reported once', (ip) => {
    const { rules, reported } = rulesOf([{ name: 'clients', key: ['route', (request) => request.user as string] }])
    for (let i = 0; i < 3; i++) rules.evaluate({ user: ip })
    expect(reported).toMatchObject([
      { code: 'WEIR_WARN_UNBOUNDED_KEY', message: expect.stringMatching(/"clients" returned an IPv6 address.* Use key: address\(/) },
    ])
  })

  test.each(['192.0.2.7', 'user:2001:db8::1', 'a:b', '12:34:56'])('a function that returns %s is not, nor is address()', (user) => {
    const { rules, reported } = rulesOf([{ key: (request) => request.user as string }, { name: 'b', key: address(() => '2001:db8::1') }])
    rules.evaluate({ user })
    expect(reported).toEqual([])
  })

  test.each(['ann', 'ann?', '/users/7', 'a/b?', 'k'.repeat(256)])('a key such as %s is not raw', (user) => {
    const { rules, reported } = rulesOf([{ key: (request) => request.user as string }])
    rules.evaluate({ user })
    expect(reported).toEqual([])
  })

  test('a long value is bounded and told apart from every other', () => {
    const long = 'k'.repeat(4_095)
    const key = keyOf((request) => request.user as string, { user: long }) as string
    expect(key.length).toBe(257)
    expect(keyOf((request) => request.user as string, { user: `${long}!` })).not.toBe(key)
    expect(keyOf((request) => request.user as string, { user: key })).not.toBe(key)
  })

  test('one of more than 4096 characters is no key, so that nobody makes a server hash what it sends: the address counts', () => {
    const headers = (length: number) => ({ headers: { 'x-api-key': 'k'.repeat(length) }, ip: '192.0.2.1' })
    const byAddress = keyOf(header('x-api-key'), { headers: {}, ip: '192.0.2.1' })
    expect(keyOf(header('x-api-key'), headers(4_096))).not.toBe(byAddress)
    expect(keyOf(header('x-api-key'), headers(4_097))).toBe(byAddress)
    expect(keyOf((request) => request.user as string, { user: 'k'.repeat(4_097), ip: '192.0.2.1' })).toBe(byAddress)
  })
})

describe('match', () => {
  test.each<[string, FakeRequest, boolean]>([
    ['POST /api/x', { method: 'POST', path: '/api/x' }, true],
    ['POST /api/x', { method: 'GET', path: '/api/x' }, false],
    ['GET /api/x', { method: 'HEAD', path: '/api/x' }, true],
    ['/api/x', { method: 'DELETE', path: '/api/x/?q' }, true],
    ['/api/x', { path: '/API//%78' }, true],
    ['/api/x', { path: '/api/xy' }, false],
    ['/api/*rest', { path: '/api/a/b' }, true],
    ['/api/*rest', { path: '/api' }, false],
    ['/api{/*rest}', { path: '/api' }, true],
    ['/api/*rest', { path: '/api/../public' }, true],
    ['/public', { path: '/api/../public' }, true],
    ['/api/*rest', { path: '/api/%2e%2e/public' }, true],
    ['/users/:id', { path: '/users/42' }, true],
    ['/users/:id', { path: '/users/42/orders' }, false],
    ['/users/:id/orders', { path: '/users/42/orders' }, true],
    ['/users/:id/orders', { path: '/users/a%2Fb/orders' }, true],
    ['/:tenant/users', { path: '/acme/users' }, true],
    ['/files/:name.json', { path: '/files/a.json' }, true],
    ['/files/v:number', { path: '/files/v3' }, true],
    ['/café', { path: '/caf%C3%A9' }, true],
    ['/caf%C3%A9', { path: '/caf%c3%a9' }, true],
    ['/', { path: '/' }, true],
    ['/', { path: '/a' }, false],
    ['/*all', { path: '/any/thing' }, true],
  ])('%s for %j: %s', (match, request, expected) => {
    expect(applies(paths(match), request)).toBe(expected)
  })

  test('several patterns apply once', () => {
    const { rules } = rulesOf([{ key: 'all', match: paths('/a', '/:any', 'GET /a') }])
    expect(rules.evaluate({ path: '/a' })).toBe(true)
    expect(rules.applying.slice(0, rules.applied)).toEqual([0])
  })

  test('policies keep their order, and what does not apply is undefined', () => {
    const { rules } = rulesOf([
      { key: 'all' },
      { match: paths('/a'), key: 'all' },
      { match: paths('/b'), key: 'all' },
      { match: (request) => request.method === 'POST', key: 'all' },
    ])
    rules.evaluate({ method: 'POST', path: '/b' })
    expect(rules.applying.slice(0, rules.applied)).toEqual([0, 2, 3])
    expect(rules.keys).toEqual(['all', undefined, 'all', 'all'])
    rules.evaluate({ path: '/a' })
    expect(rules.keys).toEqual(['all', 'all', undefined, undefined])
    rules.evaluate({ path: '/c' })
    expect(rules.keys).toEqual(['all', undefined, undefined, undefined])
  })

  test('a match function that throws applies the policy, with one report', () => {
    const { rules, reported } = rulesOf([
      {
        key: 'all',
        match: () => {
          throw new Error('boom')
        },
      },
      {
        key: 'all',
        match: () => {
          throw undefined
        },
      },
    ])
    for (let i = 0; i < 2; i++) expect(rules.evaluate({})).toBe(true)
    expect(rules.applying.slice(0, rules.applied)).toEqual([0, 1])
    expect(reported).toHaveLength(2)
  })

  test('the tree finds what trying all patterns finds', () => {
    const segment = fc.constantFrom('a', 'b', ':x', 'a-:x', '*rest')
    const pattern = fc
      .array(segment, { maxLength: 4 })
      .filter(
        (segments) =>
          new Set(segments.filter((s) => s.includes('*') || s.includes(':'))).size ===
          segments.filter((s) => s.includes('*') || s.includes(':')).length,
      )
      .map((segments) => `/${segments.map((s, i) => s.replace('x', `x${i}`)).join('/')}`)
    const path = fc.array(fc.constantFrom('a', 'b', 'a-1', 'c'), { maxLength: 5 }).map((segments) => `/${segments.join('/')}`)
    fc.assert(
      fc.property(fc.array(pattern, { minLength: 1, maxLength: 12 }), path, (patterns, requested) => {
        const { rules } = rulesOf(patterns.map((match) => ({ match: paths(match), key: 'all' })))
        rules.evaluate({ path: requested })
        const expected = patterns.flatMap((match, place) => {
          const { regexp } = pathToRegexp(match)
          // If a path ends in a slash, a wildcard may match nothing.
          const open = match.includes('*') && requested.endsWith('/') && regexp.test(`${requested}x`)
          return regexp.test(requested) || open ? [place] : []
        })
        expect(rules.applying.slice(0, rules.applied)).toEqual(expected)
      }),
      { numRuns: 1000 },
    )
  })

  test('of 200 policies only those are tried that a path can lead to', () => {
    const index = new PathIndex()
    for (let i = 0; i < 200; i++) index.add([`POST /api/v1/:tenant/resource-${i}/:id`], i)
    index.add(['/api/*rest'], 200)
    expect(index.candidates('/api/v1/acme/resource-7/42')).toHaveLength(2)
    expect(index.candidates('/api/v1/acme/resource-7')).toHaveLength(1)
    expect(index.candidates('/other/v1/acme/resource-7/42')).toHaveLength(0)
  })
})

describe('costs', () => {
  test('costs by policy name count at the policies that they name, and at no other', () => {
    const cost = () => ({ requests: 1, tokens: 900, usd: undefined })
    const names = ['requests', 'usd', 'tokens', 'constructor']
    const { rules, reported } = rulesOf([...names.map((name) => ({ name, key: 'all' as const, cost })), { name: 'last', key: 'all' }])
    for (let i = 0; i < 2; i++) {
      expect(rules.evaluate({})).toBe(true)
      expect(rules.applying.slice(0, rules.applied).map((place) => rules.costs[place])).toEqual([1, 900, 1])
      expect(rules.keys).toEqual(['all', undefined, 'all', undefined, 'all'])
    }
    expect(reported).toEqual([])
    expect(rulesOf([{ name: 'usd', key: 'all', cost }]).rules.evaluate({})).toBe(true)
    const none = rulesOf([{ key: 'all', cost: () => ({}) }])
    expect(none.rules.evaluate({})).toBe(true)
    expect(none.reported).toHaveLength(1)
  })

  test.each<[string, () => unknown]>([
    ['a name that no policy has', () => ({ tokns: 900 })],
    ['zero', () => ({ tokens: 0 })],
    ['null', () => ({ tokens: null })],
    ['a text for another policy', () => ({ tokens: 900, other: '1' })],
    ['infinity for another policy', () => ({ tokens: 900, other: Number.POSITIVE_INFINITY })],
    ['a map', () => new Map([['tokens', 900]])],
    ['a list', () => []],
    ['an instance of a class', () => new URL('http://a')],
    ['a getter that throws', () => Object.defineProperty({}, 'tokens', { enumerable: true, get: () => expect.fail() })],
  ])('costs by policy name that are unusable count as 1 and are reported once: %s', (_, cost) => {
    const { rules, reported } = rulesOf([
      { name: 'tokens', key: 'all', cost: cost as () => number },
      { name: 'other', key: 'all' },
    ])
    for (let i = 0; i < 2; i++) expect(rules.evaluate({})).toBe(true)
    expect([rules.applied, rules.costs]).toEqual([2, [1, 1]])
    expect(reported.map(({ code }) => code)).toEqual(['WEIR_WARN_INVALID_COST'])
    expect(reported[0]?.message).toMatch(
      /^The cost function of policy "tokens" returned .*Return a finite number > 0, or such numbers by policy name\./,
    )
  })

  test('a function is asked for each request', () => {
    const { rules } = rulesOf([{ key: 'all', cost: (request) => Number(request.user) }, { key: 'all', cost: 3 }, { key: 'all' }])
    rules.evaluate({ user: 7 })
    expect(rules.costs).toEqual([7, 3, 1])
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, -1, -0, 5n, '5', undefined])('%s counts as 1, with one report', (user) => {
    const { rules, reported } = rulesOf([{ key: 'all', cost: (request) => request.user as number }])
    rules.evaluate({ user })
    rules.evaluate({ user })
    expect(rules.costs).toEqual([1])
    expect(reported).toMatchObject([{ code: 'WEIR_WARN_INVALID_COST' }])
  })
})

describe('what cannot be used is rejected', () => {
  test.each<[Partial<RequestRule<never>>, string]>([
    [{ key: 'user' as 'ip' }, 'key'],
    [{ key: [] }, 'key'],
    [{ key: ['ip', ['route']] as unknown as ['ip'] }, 'key'],
    [{ key: 5 as unknown as 'ip' }, 'key'],
    [{ key: { header: 'no such name' } }, 'key'],
    [{ match: '/api/x' as never }, 'match'],
    [{ match: ['/api/x'] as never }, 'match'],
    [{ match: 5 as never }, 'match'],
    [{ match: null as never }, 'match'],
    [{ cost: 0 }, 'cost'],
    [{ cost: Number.NaN }, 'cost'],
    [{ cost: 1e308 }, 'cost'],
  ])('%j', (rule, option) => {
    const policies = [{ name: 'other', limit: 1, interval: '1m' }, { limit: 10, interval: '1m', ...rule } as PolicyOptions<never>] as const
    expect(() => createThrottler({ policies })).toThrow(
      expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringMatching(`^Option "policies\\[1\\].${option}"`) }),
    )
  })

  test.each(['api/x', '/a/:', '/a/*', '/a(b)', 'get /a', 'BREW /a', '/\ud800', 5 as unknown as string])('paths() checks %j', (pattern) => {
    expect(() => paths('/a', pattern)).toThrow(
      expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining('paths') }),
    )
  })

  test('paths() needs a pattern', () => {
    expect(() => paths()).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  })

  test('header() checks its name', () => {
    expect(() => header('a b')).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  })
})
