import { snapshot } from '@weir/core/inspect'
import { attack } from '../harness/attack.ts'
import { mutatedBytes } from '../harness/mutate.ts'
import { ruleOf } from '../harness/rule.ts'

const LIMIT = 5

/** Publishes messages that are nearly announcements on the store's channel. They may contain lies, but must not end or fill a process. */
export const fuzzPublish = attack<null>({
  name: 'fuzz-publish',
  targets: ['core'],
  stores: ['redis'],

  async victim(given) {
    const { createThrottler } = await import('@weir/core')
    const { storeOf } = await import('../harness/serve.ts')
    const kinds = ['fixed', 'sliding']
    const policies = await Promise.all(
      kinds.map(async (kind) => ({ name: kind, limit: LIMIT, interval: '1h', cooldown: '1s', ...(await ruleOf(kind)) }) as never),
    )
    const throttler = createThrottler({ policies, maxKeys: 2_000, heartbeat: 100, ...(await storeOf(given)) }).start()
    let asked = 0
    const answer = async (question: 'use' | 'look'): Promise<unknown> => {
      const count = (key: string): number => Array.from({ length: 10 }, () => throttler.check(key).allowed).filter(Boolean).length
      const allowed = question === 'use' ? count(`used${asked++}`) : 0
      if (question === 'use') throttler.block(`blocked${asked}`, '1h')
      globalThis.gc?.()
      const untouched = question === 'look' ? count('untouched by name') : 0
      return {
        allowed,
        untouched,
        state: throttler.state,
        heap: process.memoryUsage().heapUsed,
        keys: snapshot(throttler).policies.map(({ keys }) => keys),
      }
    }
    return { answer: answer as never }
  },

  async run({ start, result, random, time, redis }) {
    const { Redis } = await import('ioredis')
    const listener = new Redis(redis.port, '127.0.0.1')
    const client = new Redis(redis.port, '127.0.0.1')
    try {
      const heard: [channel: string, message: Buffer][] = []
      listener.on(
        'pmessageBuffer',
        (_: unknown, channel: Buffer, message: Buffer) => heard.length < 50 && heard.push([channel.toString(), message]),
      )
      await listener.psubscribe('*')
      const victims = await Promise.all([start(null, { heap: 128 }), start(null, { heap: 128 })])
      const [victim] = victims
      for (let i = 0; i < 20 || heard.length < 4; i++) {
        await Promise.all(victims.map((one) => one.ask('use')))
        await new Promise((resolve) => setTimeout(resolve, 40))
        if (i > 100) return result('announcements', false, 'none was heard')
      }
      type Seen = { readonly untouched: number; readonly state: string; readonly heap: number; readonly keys: number[] }
      const before = await victim.ask<Seen>('use')
      await listener.punsubscribe()
      let sent = 0
      let last = ''
      for (const deadline = Date.now() + time; Date.now() < deadline && victim.up; sent += 50) {
        const batch = Array.from({ length: 50 }, () => {
          const [channel, message] = random.pick(heard)
          const bytes = random.chance(0.1) ? random.bytes(random.below(3_000)) : mutatedBytes(random, message)
          last = bytes.toString('latin1')
          return client.publish(channel, bytes)
        })
        await Promise.all(batch)
      }
      const after = victim.up ? await victim.ask<Seen>('look') : undefined
      const grown = after === undefined ? 0 : after.heap - before.heap
      const held =
        after !== undefined &&
        after.state === 'synced' &&
        after.untouched === LIMIT &&
        grown < 12e6 &&
        after.keys.every((keys) => keys <= 2_001)
      result(
        `${sent} messages`,
        held,
        after === undefined
          ? `${victim.ended} after ${JSON.stringify(last)}`
          : `${after.untouched} of limit ${LIMIT} for another key, ${(grown / 1e6).toFixed(1)} MB more, ${after.state}`,
      )
    } finally {
      listener.disconnect()
      client.disconnect()
    }
  },
})
