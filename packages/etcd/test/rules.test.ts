import { readFileSync } from 'node:fs'
import { createThrottler, type Throttler } from '@weir/core'
import { follow, type RulesSource } from '@weir/core/rules'
import { rulesSourceContract } from '@weir/testing'
import { EtcdServer, NO_ETCD } from '@weir/tooling/etcd-servers'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type EtcdRules, etcdRules, etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

const DEADLINE = { timeout: 30_000, interval: 10 }
const textOf = (version: number, limit = version) =>
  JSON.stringify({ version, policies: [{ name: 'a', key: 'ip', limit, interval: '23h' }] })
const bytes = (text: string): string => Buffer.from(text).toString('base64')

if (NO_ETCD === undefined) {
  rulesSourceContract(
    'etcdRules',
    async () => {
      const server = await EtcdServer.start()
      const made: EtcdRules[] = []
      const source = () => {
        const rules = etcdRules(server.url, { timeout: PATIENT })
        made.push(rules)
        return rules
      }
      return {
        source,
        put: async (text) => {
          const writer = made[0] ?? source()
          while (!(await writer.replace(await writer.read(), text)));
        },
        goAway: () => server.kill(),
        close: async () => {
          for (const rules of made) rules.close()
          await server.stop()
        },
      }
    },
    { describe, test },
  )
}

describeEtcd('rules in etcd', () => {
  const shared = ownServer()

  function rulesIn(namespace: string, server: EtcdServer = shared.server): EtcdRules {
    const rules = etcdRules(server.url, { namespace, timeout: PATIENT })
    onTestFinished(() => rules.close())
    return rules
  }

  function throttlerAt(namespace: string, server: EtcdServer = shared.server): Throttler {
    const store = etcdStore(server.url, { namespace, timeout: PATIENT })
    const throttler = createThrottler({ policies: [{ name: 'a', limit: 99, interval: '23h' }], store })
    onTestFinished(() => throttler.close())
    return throttler.start()
  }

  /** A source that receives changes only by the watch. */
  function heard(source: EtcdRules): RulesSource {
    return Object.create(source, {
      interval: { value: 86_400_000 },
      read: { value: () => source.read() },
      watch: { value: (changed: () => void) => source.watch(changed) },
    })
  }

  /** The requests that `etcdctl put` and `etcdctl del` send. */
  const putBy = (key: string, value: string) => shared.server.ask('/v3/kv/put', { key: bytes(key), value: bytes(value) })
  const deleteBy = (key: string) => shared.server.ask('/v3/kv/deleterange', { key: bytes(key) })

  test('reach twelve nodes by the watch, within a second, and their counts stay', { timeout: 60_000 }, async () => {
    const namespace = freshNamespace()
    const writer = rulesIn(namespace)
    await writer.replace(undefined, textOf(7))
    const nodes = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const throttler = throttlerAt(namespace)
        const rules = follow(throttler, heard(rulesIn(namespace)))
        onTestFinished(() => rules.close())
        await rules.ready
        return { throttler, rules }
      }),
    )
    const versions = () => nodes.map(({ rules }) => rules.status.version)
    expect(versions()).toEqual(nodes.map(() => 7))
    for (const { throttler } of nodes) throttler.check('k', 2)
    // A busy machine may need another try. One success is enough.
    let version = 7
    await vi.waitFor(
      async () => {
        await writer.replace(await writer.read(), textOf(++version))
        await vi.waitFor(() => expect(versions()).toEqual(nodes.map(() => version)), { timeout: 1_000, interval: 5 })
      },
      { timeout: 40_000, interval: 5 },
    )
    expect(nodes.map(({ throttler }) => throttler.policies[0]?.limit)).toEqual(nodes.map(() => version))
    await vi.waitFor(async () => {
      const [usage] = await (nodes[0] as (typeof nodes)[0]).throttler.usage('k')
      expect(usage).toMatchObject({ used: 24, limit: version })
    }, DEADLINE)
  })

  test('are replaced by one of many who have seen the same', async () => {
    const namespace = freshNamespace()
    const writers = Array.from({ length: 5 }, () => rulesIn(namespace))
    await writers[0]?.replace(undefined, textOf(1))
    const outcomes = await Promise.all(writers.map((writer, i) => writer.replace(textOf(1), textOf(i + 2))))
    expect(outcomes.filter((won) => won)).toHaveLength(1)
    expect(await writers[0]?.read()).toBe(textOf(outcomes.indexOf(true) + 2))
    expect(await writers[0]?.history(10)).toHaveLength(2)
  })

  test('of a hundred changes are remembered, and no more', async () => {
    const rules = rulesIn(freshNamespace())
    let before: string | undefined
    for (let version = 1; version <= 130; version++) {
      const text = textOf(version)
      expect(await rules.replace(before, text)).toBe(true)
      before = text
    }
    expect(await rules.history(1000)).toEqual(Array.from({ length: 100 }, (_, i) => textOf(130 - i)))
    expect(await rules.history(3)).toEqual([textOf(130), textOf(129), textOf(128)])
  })

  test('that something else has written are followed, and remembered', async () => {
    const namespace = freshNamespace()
    const key = `${namespace}/rules/default`
    const rules = rulesIn(namespace)
    const throttler = throttlerAt(namespace)
    await putBy(key, textOf(1))
    const follower = follow(throttler, heard(rules))
    onTestFinished(() => follower.close())
    await follower.ready
    expect(follower.status.version).toBe(1)
    expect(await rules.history(10)).toEqual([textOf(1)])
    expect(await rules.replace(textOf(1), textOf(2))).toBe(true)
    await putBy(key, textOf(3))
    expect(await rules.history(10)).toEqual([textOf(3), textOf(2), textOf(1)])
    await vi.waitFor(() => expect(follower.status.version).toBe(3), DEADLINE)
    expect(await rules.replace(textOf(3), textOf(4))).toBe(true)
    expect(await rules.history(10)).toEqual([4, 3, 2, 1].map((version) => textOf(version)))
    await vi.waitFor(() => expect(follower.status.version).toBe(4), DEADLINE)
    await deleteBy(key)
    await vi.waitFor(() => expect(follower.status).toMatchObject({ version: 4, away: 'it contains no rules' }), DEADLINE)
    expect(throttler.policies[0]?.limit).toBe(4)
    // An entry of the history that is not a document is ignored.
    await putBy(`${key}/history/9999999999999999`, 'nonsense')
    expect(await rules.history(10)).toEqual([4, 3, 2, 1].map((version) => textOf(version)))
  })

  test('that are bad are rejected, and leave what holds', async () => {
    const namespace = freshNamespace()
    const throttler = throttlerAt(namespace)
    const warned: string[] = []
    throttler.on('warning', ({ error }) => warned.push(error.code))
    const source = rulesIn(namespace)
    await source.replace(undefined, textOf(3))
    const rules = follow(throttler, source)
    onTestFinished(() => rules.close())
    await rules.ready
    await source.replace(textOf(3), textOf(4, -1))
    await vi.waitFor(() => expect(rules.status.rejected).toMatchObject({ version: 4 }), DEADLINE)
    expect(throttler.policies[0]?.limit).toBe(3)
    expect(warned).toEqual(['WEIR_RULES_REJECTED'])
  })

  test('stay while etcd is away, and are followed when it is back', { timeout: 60_000 }, async () => {
    const own = await EtcdServer.start()
    onTestFinished(() => own.stop())
    const namespace = freshNamespace()
    const throttler = throttlerAt(namespace)
    const source = rulesIn(namespace, own)
    await source.replace(undefined, textOf(3))
    // The change arrives by the watch, which has to start again.
    const rules = follow(throttler, source)
    onTestFinished(() => rules.close())
    await rules.ready
    expect(rules.status.version).toBe(3)
    await own.kill()
    await vi.waitFor(() => expect(rules.status.away).toBeDefined(), DEADLINE)
    expect(throttler.policies[0]?.limit).toBe(3)
    await own.start()
    const writer = rulesIn(namespace, own)
    await vi.waitFor(async () => expect(await writer.replace(await writer.read(), textOf(4))).toBe(true), DEADLINE)
    await vi.waitFor(() => expect(rules.status).toMatchObject({ version: 4, away: undefined }), DEADLINE)
  })

  test('tell nobody any more who has turned away, and answer nobody after the end', async () => {
    const rules = rulesIn(freshNamespace())
    const [one, other] = [vi.fn(), vi.fn()]
    const offs = [rules.watch(one), rules.watch(other)]
    await vi.waitFor(() => expect(other).toHaveBeenCalled(), DEADLINE)
    offs[0]?.()
    const before = one.mock.calls.length
    await rules.replace(undefined, textOf(1))
    await vi.waitFor(() => expect(other.mock.calls.length).toBeGreaterThan(1), DEADLINE)
    expect(one.mock.calls.length).toBe(before)
    rules.close()
    await expect(rules.read()).rejects.toMatchObject({ code: 'WEIR_CLOSED' })
  })

  test('longer than etcd takes are rejected by it', async () => {
    const rules = rulesIn(freshNamespace())
    await expect(rules.replace(undefined, 'x'.repeat(2_000_000))).rejects.toThrow(/too large/)
    expect(await rules.read()).toBe(undefined)
  })

  test('reject bad options', () => {
    expect(() => etcdRules('http://x', { name: 'a b' })).toThrow(/name/)
    expect(() => etcdRules('http://x', { names: 'a' } as never)).toThrow(/names/)
    expect(() => etcdRules('x')).toThrow(/endpoints/)
  })
})

describeEtcd('rules in an etcd with users', () => {
  test('are read by processes that the guide allows only to read, and written by others', { timeout: 60_000 }, async () => {
    const text = readFileSync(new URL('../../../docs/guides/etcd.md', import.meta.url), 'utf8')
    expect(text).toContain('`readwrite` on `weir/1/` and `read` on `weir/rules/`')
    const server = await EtcdServer.start()
    onTestFinished(() => server.stop())
    const range = (prefix: string) => ({ key: bytes(prefix), range_end: bytes(`${prefix.slice(0, -1)}0`) })
    for (const [name, permissions] of [
      ['root', []],
      [
        'weir-node',
        [
          { permType: 'READWRITE', ...range('weir/1/') },
          { permType: 'READ', ...range('weir/rules/') },
        ],
      ],
      ['weir', [{ permType: 'READWRITE', ...range('weir/') }]],
    ] as const) {
      await server.ask('/v3/auth/role/add', { name })
      for (const perm of permissions) await server.ask('/v3/auth/role/grant', { name, perm })
      await server.ask('/v3/auth/user/add', { name, password: 'secret' })
      await server.ask('/v3/auth/user/grant', { user: name, role: name })
    }
    await server.ask('/v3/auth/enable', {})
    const at = (username: string) => {
      const rules = etcdRules({ endpoints: server.url, username, password: 'secret' }, { timeout: PATIENT })
      onTestFinished(() => rules.close())
      return rules
    }
    const [node, writer] = [at('weir-node'), at('weir')]
    const told = vi.fn()
    node.watch(told)
    expect(await writer.replace(undefined, textOf(1))).toBe(true)
    expect(await node.read()).toBe(textOf(1))
    expect(await node.history(5)).toEqual([textOf(1)])
    await expect(node.replace(textOf(1), textOf(2))).rejects.toThrow('permission denied')
    await vi.waitFor(() => expect(told).toHaveBeenCalled(), DEADLINE)
    expect(await writer.history(5)).toEqual([textOf(1)])
  })
})
