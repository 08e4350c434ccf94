import { setImmediate } from 'node:timers/promises'
import { fixedWindow, type PolicyOptions } from '@weir/core'
import type { Decide, DecidedPolicy } from '@weir/core/sync'
import { manualClock } from '@weir/testing'
import { describe, expect, test } from 'vitest'
import { RedisDecider } from '../src/central/decider.ts'
import type { Link, LinkOptions } from '../src/connection/link.ts'
import { Shard } from '../src/exchange/shard.ts'
import { Keys, type ShardKeys } from '../src/keys/keys.ts'
import type { Client } from '../src/node-redis/client.ts'
import { ClusterLink } from '../src/node-redis/cluster-link.ts'
import { ServerLink } from '../src/node-redis/server-link.ts'
import { script } from '../src/scripts/script.ts'

/** A server whose connections end at the next calls of scripts, without a reply. */
class FakeServer {
  readonly calls: (readonly string[])[] = []
  ends = 1
  pause = (): Promise<void> => Promise.resolve()

  client(): Client {
    const failed: ((error: unknown) => void)[] = []
    const end = () => {
      const error = new Error('Socket closed unexpectedly')
      for (const listener of failed) listener(error)
      throw error
    }
    return {
      connect: () => setImmediate(),
      destroy: () => {},
      on: (event, listener) => event === 'error' && failed.push(listener),
      ref: () => {},
      unref: () => {},
      subscribe: async () => {},
      sendCommand: async (command) => {
        if (command[0] === 'CLUSTER') return [[0, 16_383, ['server', 1, 'id']]]
        this.calls.push(command)
        await this.pause()
        return this.ends-- > 0 ? end() : []
      },
    }
  }
}

const LINKS: readonly [string, (server: FakeServer, options: LinkOptions) => Link][] = [
  ['a server', (server, options) => new ServerLink(() => server.client(), options)],
  [
    'a Cluster',
    (server, options) => new ClusterLink({ seeds: [{ host: 'server', port: 1 }], client: () => server.client(), map: undefined }, options),
  ],
]

describe.each(LINKS)('after the connection to %s has ended without a reply', (_name, linkTo) => {
  async function connected() {
    const clock = manualClock()
    const server = new FakeServer()
    const link = linkTo(server, { clock, timeout: 1_000, channel: undefined, received: () => {} })
    expect(await link.connected()).toBe(true)
    // A connection that ends soon after its start is not replaced at once.
    await clock.advance(500)
    return { clock, server, link }
  }

  const { step } = fixedWindow()
  if (step === undefined) throw new Error('no step')
  const options: PolicyOptions & { id: string } = { name: 'p', id: 'p', limit: 5, interval: 60_000 }
  const policy: DecidedPolicy = { id: 'p', step, parameters: step.parameters(options as never) }
  const question = { policy, key: 'k', kind: 'take', units: 1, limit: 5, at: 0 } as const
  const request: Decide = { sequence: 1, time: 0, questions: [question] }

  test('a decision is sent again as a repetition, because it may have been counted', async () => {
    const { clock, server, link } = await connected()
    await new RedisDecider(link, new Keys('n', 1), clock, 'node').decide(request)
    expect(server.calls).toHaveLength(2)
    const [, again] = server.calls as [readonly string[], readonly string[]]
    expect(again.slice(again.indexOf('@node'), again.indexOf('@node') + 3)).toEqual(['@node', '1', 'a'])
    link.close()
  })

  test('a decision is sent again only once', async () => {
    const { clock, server, link } = await connected()
    server.ends = 10
    const decided = new RedisDecider(link, new Keys('n', 1), clock, 'node').decide(request)
    await Promise.all([expect(decided).rejects.toThrow('closed'), clock.advance(5_000)])
    expect(server.calls).toHaveLength(2)
    link.close()
  })

  test('a sync is sent again only once, even if the server closes each connection after a while', async () => {
    const { clock, server, link } = await connected()
    server.ends = 10
    const keys = new Keys('n', 1).shards[0] as ShardKeys
    const shard = new Shard({ keys, nodeId: 'node', clock, link, timeout: 1_000, lost: () => {} })
    // Longer than a connection must live to be replaced at once.
    server.pause = () => new Promise((resolve) => void clock.setTimeout(resolve, 300))
    const called = shard.call(script('return 1'), [], () => '', 0)
    const failed = expect(called).rejects.toThrow('closed')
    for (let i = 0; i < 200; i++) {
      await clock.advance(10)
      await setImmediate()
    }
    await failed
    expect(server.calls).toHaveLength(2)
    link.close()
  })
})
