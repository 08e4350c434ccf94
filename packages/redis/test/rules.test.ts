import { createThrottler, type Throttler } from '@weir/core'
import { follow, type RulesSource } from '@weir/core/rules'
import { rulesSourceContract } from '@weir/testing'
import { RedisServer } from '@weir/tooling/redis-servers'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type RedisRules, redisRules, redisStore } from '../src/index.ts'
import { redisRules as nodeRedisRules } from '../src/node-redis/index.ts'
import { documentedUser, freshNamespace, PATIENT } from './fixtures.ts'

const DEADLINE = { timeout: 30_000, interval: 10 }
const textOf = (version: number, limit = version) =>
  JSON.stringify({ version, policies: [{ name: 'a', key: 'ip', limit, interval: '23h' }] })

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

function rulesIn(namespace: string, at: RedisServer = server): RedisRules {
  const rules = redisRules({ port: at.port, host: '127.0.0.1' }, { namespace })
  onTestFinished(() => rules.close())
  return rules
}

/** A source that receives changes only by messages. */
function heard(source: RedisRules): RulesSource {
  return Object.create(source, {
    interval: { value: 86_400_000 },
    read: { value: () => source.read() },
    watch: { value: (changed: () => void) => source.watch(changed) },
  })
}

function throttlerAt(namespace: string): Throttler {
  const throttler = createThrottler({
    policies: [{ name: 'a', limit: 99, interval: '23h' }],
    store: redisStore({ port: server.port, host: '127.0.0.1' }, { ...PATIENT, namespace }),
  })
  onTestFinished(() => throttler.close())
  return throttler.start()
}

rulesSourceContract(
  'redisRules',
  async () => {
    const own = await RedisServer.start()
    const made: RedisRules[] = []
    const source = () => {
      const rules = redisRules({ port: own.port, host: '127.0.0.1' })
      made.push(rules)
      return rules
    }
    return {
      source,
      put: async (text) => {
        const writer = made[0] ?? source()
        while (!(await writer.replace(await writer.read(), text)));
      },
      goAway: () => own.kill(),
      close: async () => {
        for (const rules of made) rules.close()
        await own.stop()
      },
    }
  },
  { describe, test },
)

describe('rules in Redis', () => {
  test.each([
    ['ioredis', (namespace: string) => rulesIn(namespace)],
    [
      'node-redis',
      (namespace: string) => {
        const rules = nodeRedisRules(createClient({ url: `redis://127.0.0.1:${server.port}` }), { namespace })
        onTestFinished(() => rules.close())
        return rules
      },
    ],
  ])('are read, replaced, announced and remembered, by %s', async (_, make) => {
    const namespace = freshNamespace()
    const [rules, other] = [make(namespace), make(namespace)]
    expect(await rules.read()).toBe(undefined)
    expect(await rules.history(5)).toEqual([])
    const changed = vi.fn()
    const off = other.watch(changed)
    await other.read()
    expect(await rules.replace(undefined, textOf(1))).toBe(true)
    // The subscription may not have started yet.
    await vi.waitFor(async () => {
      const before = await rules.read()
      await rules.replace(before, `${before} `)
      expect(changed).toHaveBeenCalled()
    }, DEADLINE)
    const now = await other.read()
    expect(await rules.replace(textOf(1), textOf(2))).toBe(now === textOf(1))
    expect(await rules.replace(now, 'ä\u0000\n"\\ 日本')).toBe(true)
    expect(await other.read()).toBe('ä\u0000\n"\\ 日本')
    expect((await rules.history(2)).at(1)).toBe(now)
    expect((await rules.history(1000)).at(-1)).toBe(textOf(1))
    off()
  })

  test('reach twelve nodes by a message, and their counts stay', async () => {
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
    // A process can miss messages until it has subscribed. Once all have received one, the next must reach all.
    let version = 7
    await vi.waitFor(
      async () => {
        await writer.replace(await writer.read(), textOf(++version))
        await vi.waitFor(() => expect(versions()).toEqual(nodes.map(() => version)), { timeout: 1_000, interval: 5 })
      },
      { timeout: 60_000, interval: 5 },
    )
    await writer.replace(await writer.read(), textOf(1000))
    await vi.waitFor(() => expect(versions()).toEqual(nodes.map(() => 1000)), DEADLINE)
    expect(nodes.map(({ throttler }) => throttler.policies[0]?.limit)).toEqual(nodes.map(() => 1000))
    await vi.waitFor(async () => {
      const [usage] = await (nodes[0] as (typeof nodes)[0]).throttler.usage('k')
      expect(usage).toMatchObject({ used: 24, limit: 1000 })
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
      await rules.replace(before, text)
      before = text
    }
    const texts = await rules.history(1000)
    expect(texts).toEqual(Array.from({ length: 100 }, (_, i) => textOf(130 - i)))
  })

  test('stay while Redis is away, and are followed when it is back', async () => {
    const own = await RedisServer.start()
    onTestFinished(() => own.stop())
    const namespace = freshNamespace()
    const throttler = throttlerAt(namespace)
    const source = rulesIn(namespace, own)
    await source.replace(undefined, textOf(3))
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

  test('that somebody else has put there are rejected, and leave what holds', async () => {
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
    await server.command('del', `${namespace}:{rules}:default`)
    await server.command('rpush', `${namespace}:{rules}:default`, 'x')
    await vi.waitFor(() => expect(rules.status.away).toMatch(/WRONGTYPE/), DEADLINE)
    expect(throttler.policies[0]?.limit).toBe(3)
    expect(warned).toContain('WEIR_RULES_REJECTED')
  })

  test('need no more than the user of the README may', async () => {
    const namespace = freshNamespace()
    const [name = '', ...rule] = documentedUser(namespace)
    await server.command('ACL', 'SETUSER', name, ...rule)
    const rules = redisRules({ port: server.port, host: '127.0.0.1', username: name, password: 'secret' }, { namespace })
    onTestFinished(() => rules.close())
    expect(await rules.replace(undefined, textOf(1))).toBe(true)
    expect(await rules.read()).toBe(textOf(1))
    expect(await rules.history(1)).toEqual([textOf(1)])
  })

  test('reject bad options', () => {
    expect(() => redisRules('redis://x', { name: 'a b' })).toThrow(/name/)
    expect(() => redisRules('redis://x', { names: 'a' } as never)).toThrow(/names/)
  })
})

describe.each(['ioredis', 'node-redis'])('rules that are told of by messages alone, by %s', (client) => {
  const USER = { username: 'listens', password: 'secret' }
  const open = async () => {
    const own = await RedisServer.start()
    onTestFinished(() => own.stop())
    await own.command('acl', 'setuser', USER.username, 'on', `>${USER.password}`, '~*', '+@all', 'allchannels')
    const source =
      client === 'ioredis'
        ? redisRules({ port: own.port, host: '127.0.0.1', ...USER })
        : nodeRedisRules(createClient({ url: `redis://127.0.0.1:${own.port}`, ...USER }))
    const throttler = createThrottler({ policies: [{ name: 'a', limit: 99, interval: '23h', coordination: 'local' }] })
    const warned: string[] = []
    throttler.on('warning', ({ error }) => warned.push(error.code))
    onTestFinished(() => {
      source.close()
      return throttler.close()
    })
    const writer = redisRules({ port: own.port, host: '127.0.0.1' })
    onTestFinished(() => writer.close())
    const put = async (text: string) => {
      while (!(await writer.replace(await writer.read(), text)));
    }
    await put(local(1))
    const begin = async () => {
      const rules = follow(throttler, heard(source))
      onTestFinished(() => rules.close())
      await rules.ready
      return rules
    }
    return { own, put, begin, warned }
  }
  const local = (version: number) => textOf(version).replace('"23h"', '"23h","coordination":"local"')

  test('are heard again after the subscription was cut, a broken document included', { timeout: 60_000 }, async () => {
    const { own, put, begin, warned } = await open()
    const rules = await begin()
    await own.command('client', 'kill', 'type', 'pubsub')
    let version = 1
    const heardOf = async (text: (version: number) => string, holds: () => boolean) =>
      vi.waitFor(async () => {
        await put(text(++version))
        await vi.waitFor(() => expect(holds()).toBe(true), { timeout: 500, interval: 5 })
      }, DEADLINE)
    await heardOf(local, () => rules.status.version === version)
    await heardOf(
      () => '{ "version": 7, ',
      () => rules.status.rejected !== undefined,
    )
    expect(warned).toEqual(['WEIR_RULES_REJECTED'])
    await heardOf(local, () => rules.status.version === version)
    expect(rules.status.rejected).toBe(undefined)
    expect(warned).toHaveLength(1)
  })

  test('are heard once the server lets this user listen', { timeout: 60_000 }, async () => {
    const { own, put, begin } = await open()
    await own.command('acl', 'setuser', USER.username, 'resetchannels')
    const rules = await begin()
    await put(local(2))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(rules.status.version).toBe(1)
    await own.command('acl', 'setuser', USER.username, 'allchannels')
    let version = 2
    await vi.waitFor(async () => {
      await put(local(++version))
      await vi.waitFor(() => expect(rules.status.version).toBe(version), { timeout: 500, interval: 5 })
    }, DEADLINE)
  })
})
