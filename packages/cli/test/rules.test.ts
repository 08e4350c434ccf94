import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pathToFileURL } from 'node:url'
import { EtcdServer, NO_ETCD } from '@weir/tooling/etcd-servers'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { asVersion, documentOf } from '../src/rules/document.ts'
import { file, weir } from './weir.ts'

let redis: RedisServer
let etcd: EtcdServer | undefined
let documents = 0

beforeAll(async () => {
  redis = await RedisServer.start()
  if (NO_ETCD === undefined) etcd = await EtcdServer.start()
}, 60_000)
afterAll(async () => {
  await redis?.stop()
  await etcd?.stop()
})

const yaml = (version: number, limit: number, rest = ''): string =>
  `# limits of the gateway\nversion: ${version}\npolicies:\n  - name: client\n    key: ip\n    limit: ${limit} # a minute\n    interval: 1m\n${rest}`

/** Writes a version of the rules to a file. */
const rules = (version: number, limit: number, rest?: string): string => file(`rules-${version}-${limit}.yaml`, yaml(version, limit, rest))

/** A new source in Redis for each test. */
function inRedis(): readonly string[] {
  return ['--source', redis.url, '--name', `test-${documents++}`]
}

function inEtcd(): readonly string[] {
  return ['--source', (etcd as EtcdServer).url, '--name', `test-${documents++}`]
}

type Place = readonly [name: string, source: () => readonly string[]]

/** Sources that keep older versions. */
const STORES: readonly Place[] = [['Redis', inRedis], ...(NO_ETCD === undefined ? [['etcd', inEtcd] as const] : [])]

describe('weir check', () => {
  it('says that rules hold, and what they would change', async () => {
    const now = rules(1, 100)
    const next = rules(2, 50, '  - { name: login, key: tenant, limit: 5, interval: 1h, match: POST /login, algorithm: tokenBucket }\n')
    expect(await weir(['check', now])).toMatchObject({ code: 0, out: 'The rules are valid: version 1, 1 policy.\n' })
    const { code, out } = await weir(['check', next, '--against', now])
    expect(code).toBe(0)
    expect(out).toContain('~ policies.client.limit: 100 → 50')
    expect(out).toContain('+ policies.login: {"name":"login"')
    const { differences } = JSON.parse((await weir(['check', next, '--against', now, '--json'])).out)
    expect(differences).toHaveLength(2)
  })

  it('says what is wrong, and where, and ends with 1', async () => {
    const { code, out, err } = await weir(['check', file('bad.yaml', yaml(1, 0))])
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/policies\[0\]\.limit, line 6, column 12: .*Use a number of at least 1/)
  })

  it('ends with 2 for what is no file, and takes URLs of files', async () => {
    expect((await weir(['check', 'C:\\no\\such.yaml'])).code).toBe(2)
    expect((await weir(['check', pathToFileURL(rules(1, 100)).href])).code).toBe(0)
  })
})

const FILE: Place = ['a file', () => ['--source', `${file(`source-${documents++}`, '')}.yaml`]]

describe.each<Place>([...STORES, FILE])('weir push and diff at %s', (_, source) => {
  it('put the next version, and no other', async () => {
    const at = source()
    expect(await weir(['diff', rules(1, 100), ...at])).toMatchObject({ code: 1, out: expect.stringContaining('nothing → version 1') })
    expect(await weir(['push', rules(1, 100), ...at])).toMatchObject({ code: 0, out: 'The source now contains version 1.\n' })
    expect(await weir(['diff', rules(1, 100), ...at])).toMatchObject({ code: 0 })
    // A second push of the same document changes nothing.
    expect((await weir(['push', rules(1, 100), ...at])).code).toBe(0)
    const differing = await weir(['diff', rules(2, 90), ...at, '--json'])
    expect([differing.code, JSON.parse(differing.out).differences]).toEqual([
      1,
      [{ kind: 'changed', path: 'policies.client.limit', before: 100, after: 90 }],
    ])
    const [mine, theirs] = [await weir(['push', rules(2, 90), ...at]), await weir(['push', rules(2, 80), ...at])]
    expect([mine.code, theirs.code]).toEqual([0, 1])
    expect(theirs.err).toContain('contains version 2, but the document is version')
    expect((await weir(['push', rules(4, 80), ...at])).code).toBe(1)
    expect((await weir(['diff', rules(2, 90), ...at])).code).toBe(0)
  })

  it('let one only of many win that push at once', async () => {
    const at = source()
    await weir(['push', rules(1, 100), ...at])
    const pushed = await Promise.all([10, 20, 30, 40, 50, 60].map((limit) => weir(['push', rules(2, limit), ...at, '--json'])))
    expect(pushed.filter(({ code }) => code === 0)).toHaveLength(1)
    const winner = pushed.findIndex(({ code }) => code === 0)
    expect((await weir(['diff', rules(2, 10 * (winner + 1)), ...at])).code).toBe(0)
  })

  it('never put a bad document', async () => {
    const at = source()
    expect((await weir(['push', file('bad.yaml', 'version: 1\npolicies: []\n'), ...at])).code).toBe(1)
    expect((await weir(['push', rules(1, 100), ...at])).code).toBe(0)
  })
})

describe.each<Place>(STORES)('weir log and rollback at %s', (_, source) => {
  it('list the versions, and put an older one back as a new one', async () => {
    const at = source()
    expect(await weir(['log', ...at])).toMatchObject({ code: 0, out: '', err: 'The source contains no rules yet.\n' })
    for (const [version, limit] of [
      [1, 100],
      [2, 50],
      [3, 10],
    ] as const)
      await weir(['push', rules(version, limit, `change: { by: alice, why: "limit ${limit}\\e[31m" }\n`), ...at])
    expect((await weir(['log', ...at, '--most', '2'])).out).toBe(
      'version 3 (alice: limit 10\\x1b[31m)\nversion 2 (alice: limit 50\\x1b[31m)\n',
    )
    expect(await weir(['rollback', ...at, '--by', 'bob'])).toMatchObject({ code: 0, out: expect.stringContaining('version 4 (') })
    expect(await weir(['rollback', '1', ...at, '--why', 'incident 42'])).toMatchObject({ code: 0 })
    const versions = JSON.parse((await weir(['log', ...at, '--json'])).out)
    expect(versions).toMatchObject([
      { version: 5, why: 'incident 42' },
      { version: 4, by: 'bob', why: 'back to version 2' },
      { version: 3 },
      { version: 2 },
      { version: 1 },
    ])
    expect((await weir(['diff', rules(5, 100), ...at])).code).toBe(0)
    expect(await weir(['rollback', '77', ...at])).toMatchObject({ code: 2, err: expect.stringContaining('contains no version 77') })
  })

  it('put the last good ones back where something else has written what nobody can follow', async () => {
    const at = source()
    const name = at.at(-1) as string
    for (const version of [1, 2]) await weir(['push', rules(version, version), ...at])
    if (at[1] === redis.url) await redis.command('set', `weir:{rules}:${name}`, 'version: 9')
    else await etcd?.ask('/v3/kv/put', { key: btoa(`weir/rules/${name}`), value: btoa('version: 9') })
    expect(await weir(['diff', rules(2, 2), ...at])).toMatchObject({ code: 2, err: expect.stringContaining('are invalid: ') })
    expect(await weir(['rollback', ...at])).toMatchObject({ code: 0, out: expect.stringMatching(/version 3 .*back to version 2/) })
    expect((await weir(['diff', rules(3, 2), ...at])).code).toBe(0)
  })
})

describe('weir log and rollback', () => {
  it('are for sources that keep versions', async () => {
    const source = rules(1, 100)
    expect(await weir(['rollback', '--source', source])).toMatchObject({ code: 2, err: expect.stringContaining('keeps no older versions') })
    expect(await weir(['log', '--source', source])).toMatchObject({ code: 0, out: 'version 1\n' })
  })
})

describe('a document as another version', () => {
  it('keeps what else was written, comments too', () => {
    const text = asVersion(yaml(1, 100), 8, { by: 'bob' })
    expect(text).toContain('# a minute')
    expect(documentOf(text).rules).toMatchObject({ version: 8, change: { by: 'bob' } })
    const json = asVersion('{"version":1,"policies":[{"key":"ip","limit":1,"interval":"1m"}]}', 2, {})
    expect(documentOf(json).rules.version).toBe(2)
  })
})

describe('a source', () => {
  it.each([
    [['--source', 'ftp://example.com/rules'], '"ftp" is not a source of rules'],
    [['--source', 'redis://127.0.0.1:1'], "Can't use Redis at"],
    [['--source', 'http://127.0.0.1:1'], "Can't use etcd at 127.0.0.1:1, weir/rules/default"],
    [['--source', 'http://127.0.0.1:1,http://127.0.0.1:2/'], "Can't use etcd at 127.0.0.1:1,127.0.0.1:2"],
    [['--source', 'http://127.0.0.1:1/rules.yaml'], "Can't use http://127.0.0.1:1/rules.yaml"],
    [['--source', 'http://a%zz:b@127.0.0.1:1'], 'The address of etcd can not be read'],
    [[], "required option '--source <address>'"],
  ])('that can not be used ends with 2: %j', async (at, said) => {
    const { code, err, out } = await weir(['log', ...at])
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(said)
    expect(err).not.toBe('')
  })

  it.each(['redis://user:secret@127.0.0.1:1', 'http://user:secret@127.0.0.1:1', 'http://user:secret@127.0.0.1:1/rules?key=secret'])(
    'shows no password: %s',
    async (address) => {
      const { code, err } = await weir(['log', '--source', address])
      expect(code).toBe(2)
      expect(err).not.toContain('secret')
    },
  )

  it('at an address is only read', async () => {
    const server = createServer((_, response) => response.end(yaml(4, 100, 'change: { by: alice }\n'))).listen(0, '127.0.0.1')
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    await new Promise((resolve) => server.once('listening', resolve))
    const at = ['--source', `http://127.0.0.1:${(server.address() as AddressInfo).port}/rules.yaml`]
    expect(await weir(['log', ...at])).toMatchObject({ code: 0, out: 'version 4 (alice)\n' })
    expect((await weir(['diff', rules(5, 100), ...at])).code).toBe(0)
    expect(await weir(['diff', rules(5, 50), ...at])).toMatchObject({ code: 1, out: expect.stringContaining('limit: 100 → 50') })
    expect(await weir(['push', rules(5, 50), ...at])).toMatchObject({ code: 2, err: expect.stringContaining("can't be written") })
    expect(await weir(['rollback', ...at])).toMatchObject({ code: 2, err: expect.stringContaining('keeps no older versions') })
  })
})
