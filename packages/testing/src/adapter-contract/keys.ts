import assert from 'node:assert/strict'
import { address, header } from '@weir/core/http'
import type { AdapterCase } from './context.ts'

/** The keys by which requests are counted. */
export const keyCases: readonly AdapterCase[] = [
  {
    title: 'counts each route by itself, whatever its parameters are',
    async run(context) {
      const client = await context.start(context.limit(2))
      assert.deepEqual(await client.statuses(['/users/1', '/users/2?x=1', '/users/3']), [200, 200, 429])
      assert.equal((await client.send('/')).status, 200)
    },
  },
  {
    title: 'counts the methods of a path apart',
    async run(context) {
      const client = await context.start(context.limit(1))
      assert.deepEqual(await client.statuses(['/status/200', '/status/200']), [200, 429])
      assert.deepEqual(await client.statuses(['/status/200', '/status/200'], { method: 'POST' }), [200, 429])
    },
  },
  {
    title: 'counts HEAD as GET',
    async run(context) {
      const client = await context.start(context.limit(2))
      assert.equal((await client.send('/', { method: 'HEAD' })).status, 200)
      assert.equal((await client.send('/')).status, 200)
      const rejected = await client.send('/', { method: 'HEAD' })
      assert.equal(rejected.status, 429)
      assert.equal(rejected.body, '')
      assert.ok(rejected.headers['retry-after'])
    },
  },
  {
    title: 'counts OPTIONS, and lets preflight requests pass uncounted only with skipPreflight',
    async run(context) {
      const preflight = { origin: 'https://a.example', 'access-control-request-method': 'PUT' }
      const ask = async (options: object, headers: Record<string, string> = {}) => {
        const client = await context.start({ ...context.limit(1), key: 'all', coordination: 'local', ...options })
        return (await client.statuses(['/', '/'], { method: 'OPTIONS', headers })).map((status) => status === 429)
      }
      assert.deepEqual(await ask({}), [false, true])
      assert.deepEqual(await ask({}, preflight), [false, true])
      assert.deepEqual(await ask({ skipPreflight: true }, preflight), [false, false])
      assert.deepEqual(await ask({ skipPreflight: true }), [false, true])
      assert.deepEqual(await ask({ skipPreflight: true }, { origin: 'https://a.example' }), [false, true])
    },
  },
  {
    title: 'counts all spellings of a path together',
    needs: 'paths',
    async run(context) {
      const client = await context.start(context.limit(1))
      await client.send('/users/1')
      for (const spelling of [
        '/users/1/',
        '//users/1',
        '/USERS/1',
        '/%75sers/1',
        '/x/../users/1',
        '/users/./1',
        'http://example.org/users/1',
        '/users/1#x',
      ]) {
        assert.equal((await client.send(spelling)).status, 429, spelling)
      }
    },
  },
  {
    title: 'counts all spellings of a route together',
    needs: 'patterns',
    async run(context) {
      const client = await context.start(context.limit(1))
      await client.send('/users/jane')
      for (const spelling of ['/users/joe', '/%75sers/1', '/users/a%2Fb', '/users/?x'.replace('?', 'z?')]) {
        assert.equal((await client.send(spelling)).status, 429, spelling)
      }
    },
  },
  {
    title: 'counts all that has no route together',
    needs: 'patterns',
    async run(context) {
      const client = await context.start(context.limit(2))
      assert.deepEqual(await client.statuses(['/no', '/such/route', '/at-all']), [404, 404, 429])
    },
  },
  {
    title: 'counts what has no route',
    async run(context) {
      const client = await context.start(context.limit(2))
      assert.deepEqual(await client.statuses(['/none', '/none', '/none']), [404, 404, 429])
    },
  },
  {
    title: 'counts everybody together, by address, or by a header',
    async run(context) {
      const twice = async (key: unknown) => {
        // With a store, policies of one name would share their counts.
        const client = await context.start({ ...context.limit(1), name: `by-${typeof key}-${String(key).slice(0, 3)}`, key })
        const statuses: number[] = []
        for (const user of ['ann', 'bob', 'ann'])
          statuses.push((await client.send(user === 'bob' ? '/users/1' : '/', { headers: { 'x-user': user } })).status)
        return statuses
      }
      assert.deepEqual(await twice('all'), [200, 429, 429])
      assert.deepEqual(await twice('ip'), [200, 429, 429])
      assert.deepEqual(await twice({ header: 'x-user' }), [200, 200, 429])
      assert.deepEqual(await twice(context.readHeader('x-user')), [200, 200, 429])
    },
  },
  {
    title: 'combines keys without ambiguity',
    async run(context) {
      const client = await context.start({ ...context.limit(1), key: [{ header: 'x-a' }, { header: 'x-b' }] })
      const pairs = [
        ['a', 'b'],
        ['a|b', 'c'],
        ['a', 'b|c'],
        ['a\\', '|b'],
        ['a\\|', 'b'],
        ['a|', '\\b'],
      ]
      for (const [a, b] of pairs) assert.equal((await client.send('/', { headers: { 'x-a': a, 'x-b': b } })).status, 200, `${a} and ${b}`)
      for (const [a, b] of pairs)
        assert.equal((await client.send('/', { headers: { 'x-a': a, 'x-b': b } })).status, 429, `${a} and ${b}, again`)
    },
  },
  {
    title: 'believes no forwarded address by itself',
    async run(context) {
      const client = await context.start({ ...context.limit(1), key: 'ip' })
      const from = (address: string) =>
        client.send('/', { headers: { 'X-Forwarded-For': address, Forwarded: `for=${address}`, 'X-Real-IP': address } })
      assert.equal((await from('192.0.2.1')).status, 200)
      assert.equal((await from('192.0.2.2')).status, 429)
      assert.deepEqual(
        client.warnings.map(({ code }) => code),
        ['WEIR_WARN_TRUST_PROXY'],
      )
      assert.match(client.warnings[0]?.message ?? '', /127\.0\.0\.1 has the header "x-forwarded-for"/)
    },
  },
  {
    title: 'says how to trust a proxy on a Unix socket, whose clients share a key until then',
    async run(context) {
      const client = await context.start({ ...context.limit(1), key: 'ip' })
      const { options, close } = await client.overUnixSocket()
      try {
        const from = async (address: string) => (await client.send('/', { ...options, headers: { 'X-Forwarded-For': address } })).status
        assert.deepEqual([await from('192.0.2.1'), await from('192.0.2.2')], [200, 429])
        assert.deepEqual(
          client.warnings.map(({ code }) => code),
          ['WEIR_WARN_TRUST_PROXY'],
        )
        assert.match(client.warnings[0]?.message ?? '', /^A request came over a Unix socket.* share the key "unknown"/)
      } finally {
        close()
      }
    },
  },
  {
    title: 'tells clients behind a trusted proxy apart, without a warning',
    needs: 'proxies',
    async run(context) {
      for (const proxy of ['loopback', 'unix'] as const) {
        const client = await context.start({ ...context.limit(1), name: proxy, key: 'ip' }, { proxy })
        const { options, close } = proxy === 'unix' ? await client.overUnixSocket() : { options: {}, close: () => {} }
        try {
          // The proxy adds the last address. The client sends the others.
          const from = async (listed: string) => (await client.send('/', { ...options, headers: { 'X-Forwarded-For': listed } })).status
          // One client is on the proxy's own machine.
          const clients = ['127.0.0.1', ...Array.from({ length: 8 }, (_, at) => `192.0.2.${at}`)]
          for (const address of clients) assert.equal(await from(address), 200, `${address} over ${proxy}`)
          for (const address of clients.slice(1)) assert.equal(await from(`203.0.113.7, ${address}`), 429, `${address} over ${proxy}`)
          assert.deepEqual(client.warnings, [])
        } finally {
          close()
        }
      }
    },
  },
  {
    title: 'counts the spellings and the network of an address in a header together, also when a function reads it',
    async run(context) {
      for (const [name, key, warned] of [
        ['header', address(header('x-client')), []],
        ['function', address(context.readHeader('x-client')), ['WEIR_INVALID_KEY']],
      ] as const) {
        const client = await context.start({ ...context.limit(1), name, key })
        const from = async (address: string) => (await client.send('/', { headers: { 'x-client': address } })).status
        assert.deepEqual([await from('192.0.2.1'), await from('::ffff:c000:201'), await from('192.0.2.2')], [200, 429, 200])
        assert.deepEqual([await from('2001:db8::1'), await from('[2001:DB8:0:0:1::]:443')], [200, 429])
        // None of these requests has a single address, so the address of the connection is counted.
        assert.deepEqual([await from('192.0.2.3, 192.0.2.4'), await from('nobody'), (await client.send('/')).status], [200, 429, 429])
        // Weir expects a function to find an address in every request.
        assert.deepEqual(
          client.warnings.map(({ code }) => code),
          warned,
        )
      }
    },
  },
  ...[
    {
      name: 'throws',
      key: () => {
        throw new Error('no user')
      },
    },
    { name: 'returns undefined', key: () => undefined },
    { name: 'returns an empty string', key: () => '' },
    { name: 'returns NaN', key: () => Number.NaN },
    { name: 'returns a promise', key: () => Promise.reject(new Error('too late')) },
  ].map(
    ({ name, key }): AdapterCase => ({
      title: `counts by address, with one warning, when the key function ${name}`,
      async run(context) {
        const client = await context.start({ ...context.limit(2), key })
        assert.deepEqual(await client.statuses(['/', '/users/1', '/']), [200, 200, 429])
        assert.equal(client.warnings.length, 1)
      },
    }),
  ),
]
