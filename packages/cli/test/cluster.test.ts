import { hostname, userInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { createThrottler, type Store, type Throttler } from '@weir/core'
import { etcdStore } from '@weir/etcd'
import { postgresStore } from '@weir/postgres'
import { redisStore } from '@weir/redis'
import { EtcdServer, NO_ETCD } from '@weir/tooling/etcd-servers'
import { findPostgres, PostgresServer } from '@weir/tooling/postgres-servers'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ClusterView } from '../src/cluster/store-watch.ts'
import { file, weir } from './weir.ts'

const policies = [
  { name: 'client', key: 'ip', limit: 100, interval: '12h' },
  { name: 'login', key: 'ip', limit: 50, interval: '12h', cooldown: '10m' },
] as const
const rules = file('rules.json', JSON.stringify({ version: 1, policies }))
/** Repeats a check until it succeeds, for at most 30 s. */
async function until<T>(ask: () => T | Promise<T>, so: (value: T) => boolean): Promise<T> {
  const end = performance.now() + 30_000
  for (;;) {
    const value = await ask()
    if (so(value)) return value
    if (performance.now() > end) throw new Error(`It never became so: ${JSON.stringify(value)}`)
    await sleep(50)
  }
}

interface Server {
  readonly url: string
  stop(): Promise<void>
}

/** The stores, each with a function that connects a process to it. */
const STORES: readonly { readonly name: string; readonly missing: boolean; start(): Promise<Server>; store(url: string): Store }[] = [
  { name: 'Redis', missing: false, start: () => RedisServer.start(), store: (url) => redisStore(url) },
  {
    name: 'PostgreSQL',
    missing: findPostgres() === undefined,
    start: () => PostgresServer.start(),
    store: (url) => postgresStore(url),
  },
  { name: 'etcd', missing: NO_ETCD !== undefined, start: () => EtcdServer.start(), store: (url) => etcdStore(url) },
]

describe.each(STORES.filter(({ missing }) => !missing))('with $name', ({ start, store }) => {
  let server: Server
  let nodes: Throttler[]
  let at: readonly string[]

  beforeAll(async () => {
    server = await start()
    // Each process has its own connection to the store, as in production.
    nodes = [0, 1].map(() => createThrottler({ policies, store: store(server.url), heartbeat: 100 }) as Throttler)
    for (const node of nodes) node.start()
    await until(
      () => nodes.map(({ state }) => state),
      (states) => states.every((state) => state === 'synced'),
    )
    at = ['--store', server.url]
  }, 120_000)
  afterAll(async () => {
    await Promise.all((nodes ?? []).map((node) => node.close()))
    await server?.stop()
  })

  const top = async (): Promise<ClusterView> => JSON.parse((await weir(['top', ...at, '--json'])).out)
  const of = (key: string, ...rest: readonly string[]): readonly string[] => [key, ...at, '--rules', rules, ...rest]

  describe('weir top', () => {
    it('shows the nodes and the hottest keys, and is no node itself', async () => {
      for (let i = 0; i < 30; i++) nodes[i % 2]?.check('192.0.2.66')
      const view = await until(top, ({ nodes: told, hot }) => told.length === 2 && hot.filter(({ used }) => used === 30).length === 2)
      expect(view.live).toBe(2)
      expect(view.hot.slice(0, 2)).toEqual([
        { policy: 'login', key: '192.0.2.66', used: 30, limit: 50, debt: 0 },
        { policy: 'client', key: '192.0.2.66', used: 30, limit: 100, debt: 0 },
      ])
      const { code, out } = await weir(['top', ...at])
      expect(code).toBe(0)
      expect(out).toMatch(/2 processes/)
      expect(out).toMatch(/│ login +│ 192\.0\.2\.66 │ +30 │ +50 │ 60\.0 % │/)
      expect(out).not.toContain('\x1b')
    })

    it('adds up the open reservations of all nodes', async () => {
      expect((await top()).reservations).toEqual([])
      const receipts = nodes.map((node) => node.reserve('192.0.2.77', { cost: { client: 20, login: 1 } }))
      const { reservations } = await until(top, (view) => view.reservations[0]?.open === 2)
      expect(reservations).toEqual([
        { policy: 'client', open: 2, units: 40 },
        { policy: 'login', open: 2, units: 2 },
      ])
      expect((await weir(['top', ...at])).out).toMatch(/│ client │ +2 │ +40 │/)
      for (const receipt of receipts) receipt.cancel()
      await until(top, (view) => view.reservations.length === 0)
    })

    it('draws in place in a terminal, until q is pressed', async () => {
      const { code, out } = await weir(['top', ...at], { tty: true, stdin: ['q'] })
      expect(code).toBe(0)
      expect(out).toContain('\x1b[?1049h')
      expect(out.endsWith('\x1b[?1049l')).toBe(true)
    })
  })

  describe('weir block and unblock', () => {
    it('reject a key at all nodes, and let it in again', async () => {
      expect(await weir(['block', ...of('203.0.113.9', '--for', '10m', '--policy', 'client')])).toMatchObject({
        code: 0,
        out: '203.0.113.9 is blocked for 10 min.\n',
      })
      await until(
        () => nodes.map((node) => node.peek('203.0.113.9').reason),
        (reasons) => reasons.every((reason) => reason === 'blocked'),
      )
      const { blocked } = await until(top, (view) => view.blocked.length > 0)
      expect(blocked).toEqual([{ policy: 'client', key: '203.0.113.9', remaining: expect.any(Number), manual: true }])
      expect((await weir(['top', ...at])).out).toMatch(/│ client +│ 203\.0\.113\.9 │ +[\d.]+ min │ manual block │/)
      expect(JSON.parse((await weir(['unblock', ...of('203.0.113.9', '--json')])).out)).toEqual({ key: '203.0.113.9', blockedForMs: 0 })
      await until(
        () => nodes.map((node) => node.peek('203.0.113.9').allowed),
        (allowed) => allowed.every((one) => one),
      )
      await until(top, (view) => view.blocked.length === 0)
    })
  })

  it('weir block skips policies with one key for all requests', async () => {
    const constant = { name: 'total', key: 'all', limit: 1_000, interval: '1h' }
    const other = file('constant.json', JSON.stringify({ version: 1, policies: [...policies, constant] }))
    const block = (...rest: readonly string[]) => weir(['block', '203.0.113.11', ...at, '--rules', other, '--for', '1s', ...rest])
    expect(await block('--policy', 'total')).toEqual({
      code: 1,
      out: '',
      err: expect.stringMatching(/^weir: No process uses these rules\./),
    })
    expect(await block()).toMatchObject({ code: 0, err: expect.stringContaining('weir: Skipped total: all requests count under one key') })
    expect(await block('--policy', 'client')).toMatchObject({ code: 0, err: '' })
    const only = file('only-constant.json', JSON.stringify({ version: 1, policies: [policies[0], constant] }))
    expect((await weir(['block', '203.0.113.11', ...at, '--rules', only, '--for', '1s'])).code).toBe(0)
  })

  it('weir audit shows who acted, and why', async () => {
    const by = `${userInfo().username}@${hostname()}`
    await weir(['block', ...of('203.0.113.12', '--for', '1s', '--policy', 'login', '--reason', 'scraping \x1b[31m')])
    await weir(['unblock', ...of('203.0.113.12', '--policy', 'login')])
    nodes[0]?.reset('203.0.113.12', { reason: 'a false alarm' })
    const entries = async () => JSON.parse((await weir(['audit', ...at, '--json'])).out)
    const [third, second, first] = await until(entries, ([{ action }]) => action === 'reset')
    expect(first).toEqual({
      time: expect.any(Number),
      by,
      action: 'block',
      policy: 'login',
      key: '203.0.113.12',
      reason: 'scraping \x1b[31m',
    })
    expect(second).toMatchObject({ by, action: 'unblock', policy: 'login', reason: '' })
    expect(third).toMatchObject({ by: `${hostname()}:${process.pid}`, action: 'reset', key: '203.0.113.12', reason: 'a false alarm' })
    const { code, out } = await weir(['audit', ...at, '--most', '3'])
    expect(code).toBe(0)
    expect(out).toMatch(/│ block +│ login +│ 203\.0\.113\.12 │ scraping \\x1b\[31m │/)
    expect(out).toMatch(/│ reset +│ all +│ 203\.0\.113\.12 │ a false alarm +│/)
    expect(out.split('\n')).toHaveLength(8)
    expect(out).not.toContain('\x1b')
  })

  it('weir block says so where no node counts by the rules', async () => {
    const other = file('other.json', JSON.stringify({ version: 1, policies: [policies[0], { ...policies[1], name: 'sign-in' }] }))
    const block = async (...rest: readonly string[]) =>
      (await weir(['block', '203.0.113.10', ...at, '--rules', other, '--for', '1s', ...rest])).err
    expect(await block()).toMatch(/^weir: No process at this store uses the rule of sign-in now/)
    expect(await block('--policy', 'client')).not.toContain('No process')
  })

  describe('weir explain', () => {
    it('shows why a key is allowed or rejected, and which processes count it', async () => {
      for (let i = 0; i < 40; i++) nodes[i % 4 === 0 ? 0 : 1]?.check('198.51.100.7')
      const explain = async () => JSON.parse((await weir(['explain', ...of('198.51.100.7', '--json')])).out)
      const { policies: rows, processes } = await until(
        explain,
        (all) => all.processes.length === 4 && all.policies.every(({ used }: { used: number }) => used === 40),
      )
      const allowed = { key: '198.51.100.7', algorithm: 'fixed-window', coordination: 'background', next: 'allow', reason: 'ok' }
      expect(rows).toEqual([
        { ...allowed, policy: 'client', limit: 100, used: 40, remaining: 60, blocked: false, blockedForMs: 0 },
        { ...allowed, policy: 'login', limit: 50, used: 40, remaining: 10, blocked: false, blockedForMs: 0 },
      ])
      const login = processes.filter(({ policy }: { policy: string }) => policy === 'login').map(({ own }: { own: number }) => own)
      expect(login.sort()).toEqual([10, 30])

      for (const node of nodes) for (let i = 0; i < 20; i++) node.check('198.51.100.7')
      // A rejection starts no cooldown while the store is late, so the client goes on.
      const rejected = () => {
        nodes[0]?.check('198.51.100.7')
        return explain()
      }
      const { policies: later } = await until(rejected, (all) => all.policies[1].blocked)
      expect(later[1]).toMatchObject({ remaining: 0, blocked: true, blockedBy: 'cooldown', next: 'reject', reason: 'cooldown' })
      nodes[0]?.block('198.51.100.7', '1h', { policy: 'client' })
      await until(explain, (all) => all.policies[0].blockedBy === 'manual')
      const { code, out } = await weir(['explain', ...of('198.51.100.7', '--policy', 'client')])
      expect(code).toBe(0)
      expect(out).toMatch(/│ client +│ 198\.51\.100\.7 │ fixed-window │ background +│.*│ [\d.]+ (min|h), manually │ rejected: blocked │/)
      expect(await weir(['explain', ...of('192.0.2.250', '--policy', 'login')])).toMatchObject({
        code: 0,
        out: expect.stringMatching(/│ +0 │ +50 │ +50 │ +│ allowed +│[\s\S]*\nNo process reports the key among its most used ones\.\n$/),
      })
    })
  })

  describe('weir usage and reset', () => {
    it('tell what a key has used at all nodes, and begin anew', async () => {
      for (let i = 0; i < 6; i++) nodes[i % 2]?.check('198.51.100.1')
      const usage = async () => JSON.parse((await weir(['usage', ...of('198.51.100.1', '--json')])).out)
      const used = await until(usage, (all: { used: number }[]) => all.every(({ used }) => used === 6))
      expect(used).toMatchObject([
        { policy: 'client', limit: 100, used: 6, remaining: 94, source: 'store' },
        { policy: 'login', limit: 50, used: 6 },
      ])
      expect((await weir(['usage', ...of('198.51.100.1', '--policy', 'login')])).out).toMatch(
        /│ login +│ 198\.51\.100\.1 │ +6 │ +50 │ +44 │/,
      )
      expect((await weir(['reset', ...of('198.51.100.1', '--policy', 'login')])).out).toBe('Counts of 198.51.100.1 reset.\n')
      await until(usage, (all) => all[1].used === 0 && all[0].used === 6)
      await until(
        () => nodes.map((node) => node.peek('198.51.100.1').parts[1]?.remaining),
        (left) => left.every((one) => one === 50),
      )
    })
  })

  it('weir top shows the keys that are limited first, with the sums of all processes', async () => {
    for (const node of nodes) for (let i = 0; i < 60; i++) node.check('198.51.100.66')
    const view = await until(top, ({ limited }) => limited.some(({ key, processes }) => key === '198.51.100.66' && processes === 2))
    const one = view.limited.find(({ key }) => key === '198.51.100.66')
    // Each process allows 50 of 60 by its own counts, before they sync.
    expect(one).toMatchObject({ policy: 'login', processes: 2, rejected: 20, rejectedLastMinute: 20 })
    expect(one?.sinceFirstMs).toBeGreaterThanOrEqual(one?.sinceLastMs ?? Number.NaN)
    const { out } = await weir(['top', ...at])
    expect(out).toMatch(/^limited now: \d keys?\n.*\n.* policy .* reason .* last min .* total .* since .* last .*\n/)
    expect(out).toMatch(/│ login +│ 198\.51\.100\.66 │ (at its limit|cooldown) +│ +20 │ +20 │ .* s │ .* s │/)
    expect(out).toMatch(/\novershoot: measured [\d.]+ % in the last hour, possible now [\d.]+ % of the limit\n2 processes\n/)
    expect((await weir(['top', ...at, '--mode', 'dry-run'])).out).toMatch(
      /^limited now: no key in the last minute\n[\s\S]*no key is blocked\n$/,
    )
    expect(await weir(['reset', ...of('198.51.100.66')])).toMatchObject({ code: 0 })
    await until(top, ({ blocked }) => blocked.every(({ key }) => key !== '198.51.100.66'))
  })
})

describe('weir top in a terminal', () => {
  it('goes on where the store goes away, and says so', { timeout: 60_000 }, async () => {
    const server = await RedisServer.start()
    onTestFinished(() => server.stop())
    const node = createThrottler({ policies, store: redisStore(server.url), heartbeat: 100 }) as Throttler
    onTestFinished(() => node.close())
    node.start()
    await until(
      () => node.state,
      (state) => state === 'synced',
    )
    const { code, out } = await weir(['top', '--store', server.url], {
      tty: true,
      async *stdin(written) {
        const shown = (text: string) =>
          until(
            () => written.out,
            (all) => all.includes(text),
          )
        await shown('1 process')
        await server.kill()
        await shown('is unreachable')
        await server.start()
        yield 'q'
      },
    })
    expect(code).toBe(0)
    expect(out.endsWith('\x1b[?1049l')).toBe(true)
  })
})

describe('a store without a process', () => {
  it('ends with 1 before anything changes', { timeout: 60_000 }, async () => {
    const server = await RedisServer.start()
    onTestFinished(() => server.stop())
    const at = ['--store', server.url, '--namespace', 'typo']
    const nothing = { code: 1, out: '', err: 'weir: No process uses this namespace. Check --store and --namespace.\n' }
    expect(await weir(['top', ...at])).toEqual(nothing)
    expect(await weir(['top', ...at, '--json'])).toEqual(nothing)
    expect(await weir(['audit', ...at])).toEqual(nothing)
    for (const command of [
      ['block', 'x', '--for', '1m'],
      ['unblock', 'x'],
      ['reset', 'x'],
    ]) {
      expect(await weir([...command, ...at, '--rules', rules])).toEqual(nothing)
    }
    const { code, out } = await weir(['top', ...at], { tty: true })
    expect([code, out.includes('0 processes')]).toEqual([1, false])
    expect((await server.keys('typo:*')).filter((key) => key.includes('blocks') || key.endsWith('audit'))).toEqual([])
  })
})

describe('what can not be done', () => {
  it.each([
    ['top', '--store', 'redis://127.0.0.1:1'],
    ['top', '--store', 'postgres://127.0.0.1:1/weir'],
    ['top', '--store', 'http://127.0.0.1:1'],
    ['top', '--store', 'mysql://user:secret@127.0.0.1/weir'],
    ['top', '--store', 'http://[::1'],
    ['usage', 'x', '--store', 'redis://127.0.0.1:1', '--rules', rules],
    ['explain', 'x', '--store', 'redis://127.0.0.1:1', '--rules', rules],
    ['block', 'x', '--store', 'redis://127.0.0.1:1', '--rules', rules, '--for', '1m'],
  ])('ends with 2: weir %s', async (...args) => {
    const { code, err, out } = await weir(args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^weir: ./)
    expect(err).not.toContain('secret')
  })

  it('names what is wrong', async () => {
    const of = (key: string, ...rest: readonly string[]) => [key, '--store', 'redis://127.0.0.1:1', '--rules', rules, ...rest]
    expect(await weir(['block', ...of('x', '--for', '0s')])).toMatchObject({ code: 2, err: expect.stringContaining('at least 1ms') })
    expect(await weir(['block', ...of('x', '--for', '10')])).toMatchObject({ code: 2, err: expect.stringContaining('no unit. Use 10s') })
    expect(await weir(['block', ...of('x', '--for', '1.5')])).toMatchObject({ code: 2, err: expect.stringContaining('no unit. Use 1.5s') })
    expect(await weir(['unblock', ...of('')])).toMatchObject({ code: 2, err: expect.stringContaining('It is empty') })
    expect(await weir(['reset', ...of('x', '--policy', 'none')])).toMatchObject({ code: 2, err: expect.stringContaining('"none"') })
    expect(await weir(['top'])).toMatchObject({ code: 2, err: expect.stringContaining("'--store <address>'") })
    const plans = { version: 1, policies: [{ name: 'client', key: 'ip', interval: '1m', plan: 'tier', plans: { free: 3, pro: 6 } }] }
    const planned = file('plans.json', JSON.stringify(plans))
    const reset = async (policy: string) =>
      (await weir(['reset', 'x', '--store', 'redis://127.0.0.1:1', '--rules', planned, '--policy', policy])).err
    expect(await reset('client')).toContain('Use "client:free" or "client:pro"')
    expect(await reset('client:pro')).not.toContain('There is no policy')
  })
})
