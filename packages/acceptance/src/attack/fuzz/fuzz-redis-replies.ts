import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { attack } from '../harness/attack.ts'
import { mutatedBytes } from '../harness/mutate.ts'
import { ruleOf } from '../harness/rule.ts'

const LIMIT = 5

/** Sends bytes that are nearly replies of Redis. Meanwhile the process applies its limit alone, and afterwards it syncs again. */
export const fuzzRedisReplies = attack<{ readonly port: number }>({
  name: 'fuzz-redis-replies',
  targets: ['core'],
  stores: ['redis'],

  async victim({ namespace, args: { port } }) {
    const { createThrottler } = await import('@weir/core')
    const { redisStore } = await import('@weir/redis')
    const kinds = ['fixed', 'sliding']
    const policies = await Promise.all(
      kinds.map(async (kind) => ({ name: kind, limit: LIMIT, interval: '1h', ...(await ruleOf(kind)) }) as never),
    )
    const throttler = createThrottler({
      policies,
      heartbeat: 100,
      store: redisStore({ host: '127.0.0.1', port }, { namespace, timeout: 100 }),
    }).start()
    let asked = 0
    const answer = async (question: 'use' | 'look'): Promise<unknown> => {
      const key = `k${asked++}`
      let allowed = 0
      for (let round = 0; round < 4; round++) {
        for (let i = 0; i < 4; i++) if (throttler.check(key).allowed) allowed++
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      if (question === 'look')
        for (let i = 0; i < 150 && throttler.state !== 'synced'; i++) await new Promise((resolve) => setTimeout(resolve, 30))
      return { allowed, state: throttler.state }
    }
    return { answer: answer as never }
  },

  async run({ start, result, random, time, redis }) {
    let lies = false
    let told = 0
    let last = ''
    const sockets = new Set<Socket>()
    const proxy = createServer((near) => {
      const far = connect(redis.port, '127.0.0.1')
      for (const socket of [near, far]) {
        sockets.add(socket)
        socket.on('error', () => {})
        socket.once('close', () => {
          near.destroy()
          far.destroy()
          sockets.delete(socket)
        })
      }
      near.on('data', (data) => far.write(data))
      far.on('data', (data) => {
        const lie = lies && random.chance(0.3)
        const bytes = lie ? mutatedBytes(random, data) : data
        if (lie) {
          told++
          last = bytes.toString('latin1')
        }
        near.write(bytes)
      })
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    try {
      const victim = await start({ port: (proxy.address() as AddressInfo).port }, { heap: 128 })
      type Seen = { readonly allowed: number; readonly state: string }
      await victim.ask<Seen>('look')
      let most = 0
      lies = true
      for (const deadline = Date.now() + time; Date.now() < deadline && victim.up; ) {
        const seen = await victim.ask<Seen>('use').catch(() => undefined)
        most = Math.max(most, seen?.allowed ?? 0)
      }
      lies = false
      const after = victim.up ? await victim.ask<Seen>('look') : undefined
      const held = after?.state === 'synced' && most <= LIMIT
      result(
        `${told} replies`,
        held,
        after === undefined ? `${victim.ended} after ${JSON.stringify(last)}` : `${most} of limit ${LIMIT}, then ${after.state}`,
      )
    } finally {
      proxy.close()
      for (const socket of sockets) socket.destroy()
    }
  },
})
