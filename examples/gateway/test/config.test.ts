import { availableParallelism } from 'node:os'
import { describe, expect, it } from 'vitest'
import { parseConfig, processesOf, readConfig } from '../src/config.ts'
import { ConfigError } from '../src/config-error.ts'
import { namedStore } from '../src/store.ts'

const SAMPLE = new URL('../gateway.yaml', import.meta.url)

const GOOD = `listen: { port: 8080 }
routes:
  - prefix: /
    upstream: http://127.0.0.1:3000
limits:
  - name: everyone
    key: all
    limit: 1000
    interval: 1m
  - name: client
    key: [ip, { header: x-api-key }]
    limit: 10
    interval: 1m
    match: POST /orders
    cost: 2
`

describe('the configuration', () => {
  it('of the sample file is right', () => {
    const config = readConfig(SAMPLE.pathname)
    expect(config.limits.map(({ name }) => name)).toEqual(['everyone', 'client', 'search'])
  })

  it('has defaults', () => {
    expect(parseConfig(GOOD, 'g.yaml')).toMatchObject({
      listen: { host: '127.0.0.1' },
      trustProxy: [],
      shutdownSeconds: 10,
      drainSeconds: 0,
    })
    expect(parseConfig(GOOD, 'g.yaml').store).toBeUndefined()
  })

  it.each([
    ['a missing section', /^limits:[\s\S]*/m, '', /^g\.yaml:1: "limits" is missing: it must be a list of limits$/],
    ['a missing value', '    limit: 1000\n', '', /^g\.yaml:6: "limits\[0\]\.limit" is missing: it must be a number/],
    ['an unknown word', 'limit: 1000', 'limt: 1000', /^g\.yaml:(6|8): .*limi?t/],
    [
      'an unknown word beside all others',
      'cost: 2',
      'cost: 2\n    price: 3',
      /^g\.yaml:16: "limits\[1\]\.price" is unknown; allowed here: name, key, match/,
    ],
    ['an unknown section', 'listen:', 'cache: yes\nlisten:', /^g\.yaml:1: "cache" is unknown; allowed here: listen, routes/],
    ['a limit of nothing', 'limit: 10\n', 'limit: 0\n', /^g\.yaml:12: "limits\[1\]\.limit": .*at least 1/],
    ['a time without a unit', 'interval: 1m\n    match', 'interval: "60"\n    match', /^g\.yaml:13: "limits\[1\]\.interval": .*"60"/],
    ['spans that are too few', 'cost: 2', 'spans: 1', /^g\.yaml:15: "limits\[1\]\.spans": /],
    ['a cost above the limit', 'cost: 2', 'cost: 20', /^g\.yaml:15: "limits\[1\]\.cost": /],
    [
      'a key that is none',
      'key: all',
      'key: everyone',
      /^g\.yaml:7: "limits\[0\]\.key": it must be all, ip, route, \{ header: name \}, or a list of these$/,
    ],
    ['a port out of range', 'port: 8080', 'port: 80800', /^g\.yaml:1: "listen\.port": it must be a port from 0 to 65535$/],
    [
      'an upstream that is no URL',
      'http://127.0.0.1:3000',
      'localhost',
      /^g\.yaml:4: "routes\[0\]\.upstream": it must be an http:\/\/ or https:\/\/ address/,
    ],
    ['a prefix without a slash', 'prefix: /', 'prefix: api', /^g\.yaml:3: "routes\[0\]\.prefix": it must be a path that begins with \/$/],
    ['two limits of one name', 'name: client', 'name: everyone', /^g\.yaml:10: .*another limit "everyone" in line 6$/],
    ['a store that is none', 'listen:', 'store: localhost\nlisten:', /^g\.yaml:1: "store": it must be an address of Redis/],
    ['a part of a process', 'listen:', 'processes: 1.5\nlisten:', /^g\.yaml:1: "processes": it must be a whole number of processes/],
    ['no YAML', 'routes:', 'routes: [', /^g\.yaml:\d+: it is no YAML: /],
    ['a word where a number belongs', 'limit: 1000', 'limit: many', /^g\.yaml:8: "limits\[0\]\.limit": it must be a number of requests$/],
    ['nothing at all', /^[\s\S]*$/, '', /^g\.yaml(:1)?: /],
  ])('with %s names the line and what is allowed', (_, from, to, message) => {
    const text = GOOD.replace(from, to)
    expect(text).not.toBe(GOOD)
    let error: unknown
    try {
      parseConfig(text, 'g.yaml')
    } catch (caught) {
      error = caught
    }
    expect(error).toBeInstanceOf(ConfigError)
    expect((error as ConfigError).message).toMatch(message)
    expect((error as ConfigError).message).not.toContain('\n')
  })

  it.each([
    ['', undefined],
    ['processes: 1\n', undefined],
    ['store: ipc\n', availableParallelism()],
    ['store: ipc\nprocesses: 1\n', 1],
    ['store: postgres://h/d\n', undefined],
    ['store: http://h:2379\nprocesses: 3\n', 3],
  ])('with %j asks for %s processes behind this one', (text, processes) => {
    expect(processesOf(parseConfig(text + GOOD, 'g.yaml'), 'g.yaml')).toBe(processes)
  })

  it('of several processes without a place to meet is rejected', () => {
    expect(() => processesOf(parseConfig(`processes: 2\n${GOOD}`, 'g.yaml'), 'g.yaml')).toThrow(
      /^g\.yaml: "processes": 2 processes need a store/,
    )
  })

  it.each([
    ['redis', 'REDIS_URL', 'redis://127.0.0.1:6379'],
    ['postgres', 'POSTGRES_URL', 'postgres://127.0.0.1:5432/postgres'],
    ['etcd', 'ETCD_URL', 'http://127.0.0.1:2379'],
  ])('takes --store %s from %s, or that of this machine', (name, variable, usual) => {
    expect(namedStore(name, {})).toBe(usual)
    expect(namedStore(name, { [variable]: `${usual}1` })).toBe(`${usual}1`)
    expect(namedStore(name, { [variable]: 'nonsense' })).toBeUndefined()
  })

  it('that cannot be read says so', () => {
    expect(() => readConfig('/nowhere/gateway.yaml')).toThrow(/^\/nowhere\/gateway\.yaml: cannot be read: ENOENT$/)
  })
})
