import { attack } from '../harness/attack.ts'
import { ruleOf } from '../harness/rule.ts'

const LIMIT = 5
interface Args {
  readonly node: number
}
interface Seen {
  readonly allowed: number
  readonly other: number
  readonly state: string
  readonly storeDown: number
  readonly warnings: readonly string[]
}
type Client = import('ioredis').Redis

/** Values that a mistake may leave in Redis: of another type, of the same type with nonsense in it, or huge. */
const CORRUPTIONS: Readonly<Record<string, (client: Client, key: string, type: string) => Promise<unknown>>> = {
  'of another type': async (client, key, type) => {
    await client.del(key)
    return type === 'list' ? client.set(key, 'x') : client.rpush(key, 'x')
  },
  'garbage in the same type': (client, key, type) => garbage(client, key, type, ['garbage', '\u0000\u00ff', ':', ' : :', '%', '1e999 x:y']),
  'numbers out of range': (client, key, type) =>
    garbage(client, key, type, ['nan', '-nan', '1e400', '-5', '99999999999999999999', '1e308 x:1e308']),
  'members without form': async (client, key, type) => {
    if (type !== 'zset') return garbage(client, key, type, [''])
    for (const member of ['', 'x', ':::', '\n', '%zz', 'v1:p'.repeat(500), '{"a":1}', '[1', '0']) {
      await client.zadd(key, 'inf', member)
      await client.zadd(key, 4e12, `${member}2`)
    }
    return undefined
  },
}

/** Corrupts values in Redis. Only the corrupt value may be lost, and neither other keys nor processes that start later may be affected. */
export const corruptRedis = attack<Args>({
  name: 'corrupt-redis',
  targets: ['core'],
  stores: ['redis'],

  async victim(given) {
    const { createThrottler } = await import('@weir/core')
    const { storeOf } = await import('../harness/serve.ts')
    const kinds = ['fixed', 'sliding']
    const policies = await Promise.all(
      kinds.map(async (kind) => ({ name: kind, limit: LIMIT, interval: '1h', cooldown: '10m', ...(await ruleOf(kind)) }) as never),
    )
    const throttler = createThrottler({ policies, ...(await storeOf(given)), heartbeat: 100 }).start()
    let storeDown = 0
    const warnings: string[] = []
    throttler.on('storeDown', () => void storeDown++)
    throttler.on('warning', ({ error }) => warnings.length < 20 && warnings.push(error.message))
    const answer = async (question: 'use' | 'look' | 'fresh'): Promise<Seen> => {
      const count = (key: string): number => Array.from({ length: 12 }, () => throttler.check(key).allowed).filter(Boolean).length
      if (question === 'use') throttler.block('blocked', '1h')
      const allowed = question === 'look' ? 0 : count(question === 'use' ? 'mine' : 'fresh')
      const other = question === 'look' ? count(`other${storeDown}${Math.floor(performance.now())}`) : 0
      await new Promise((resolve) => setTimeout(resolve, 300))
      for (let i = 0; i < 40 && throttler.state !== 'synced'; i++) await new Promise((resolve) => setTimeout(resolve, 50))
      return { allowed, other, state: throttler.state, storeDown, warnings }
    }
    return { answer: answer as never }
  },

  async run({ start, result, redis, namespace }) {
    const { Redis } = await import('ioredis')
    const client = new Redis(redis.port, '127.0.0.1')
    client.on('error', () => {})
    try {
      for (const [what, corrupt] of Object.entries(CORRUPTIONS)) {
        await client.flushall()
        const one = await start({ node: 1 })
        await one.ask('use')
        const keys = (await client.keys('*')).filter((key) => key.includes(namespace))
        for (const key of keys) await corrupt(client, key, await client.type(key)).catch(() => {})
        const before = await one.ask<Seen>('look')
        await new Promise((resolve) => setTimeout(resolve, 1_000))
        const after = await one.ask<Seen>('look')
        const fallen = after.storeDown - before.storeDown
        const held = one.up && after.state === 'synced' && fallen === 0 && after.other === LIMIT
        result(
          `${keys.length} values ${what}`,
          held,
          `${after.state}, ${after.storeDown} times storeDown, ${fallen} of them in the last second`,
        )
        const two = await start({ node: 2 })
        const late = await two.ask<Seen>('fresh')
        result(
          `a node that starts among values ${what}`,
          two.up && late.state === 'synced' && late.storeDown === 0 && late.allowed === LIMIT,
          `${late.state}, ${late.storeDown} times storeDown`,
        )
        await Promise.all([one.kill(), two.kill()])
      }
    } finally {
      client.disconnect()
    }
  },
})

async function garbage(client: Client, key: string, type: string, texts: readonly string[]): Promise<unknown> {
  const text = texts[key.length % texts.length] as string
  if (type === 'string') return client.set(key, text, 'KEEPTTL')
  if (type === 'hash') {
    for (const field of await client.hkeys(key)) await client.hset(key, field, text)
    return client.hset(key, text, text)
  }
  if (type === 'zset') return client.zadd(key, 4e12, text)
  return client.rpush(key, text)
}
