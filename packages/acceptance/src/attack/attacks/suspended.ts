import { attack } from '../harness/attack.ts'
import { serve, storeOf } from '../harness/serve.ts'
import { flood, reached, requestText } from '../harness/wire.ts'

const LIMIT = 200

/** Suspends Redis or a process. The other processes must answer at once and without errors, and together stay near the limit. */
export const suspended = attack<null>({
  name: 'suspended',
  targets: ['express5', 'fastify5', 'koa3'],
  stores: ['redis'],
  short: { targets: ['fastify5'] },

  async victim(given) {
    const options = { key: 'all', limit: LIMIT, interval: '1h', heartbeat: 100, ...(await storeOf(given)) }
    const { port, throttler } = await serve(given.target as never, { options })
    return { port, answer: () => throttler.state }
  },

  async run({ start, result, redis, short }) {
    const nodes = await Promise.all([start(null), start(null)])
    const synced = async (): Promise<boolean> => {
      for (let i = 0; i < 100; i++) {
        const states = await Promise.all(nodes.map((node) => node.ask<string>('state')))
        if (states.every((state) => state === 'synced')) return true
        await pause(50)
      }
      return false
    }
    const send = (node: number, count: number): ReturnType<typeof flood> =>
      flood(nodes[node]?.port as number, count, () => requestText('GET', '/'), 2)
    let replies = [...(await send(0, 30)), ...(await send(1, 30))]
    await synced()

    redis.pause()
    const began = performance.now()
    const hanging = [...(await send(0, 40)), ...(await send(1, 40))]
    const took = (performance.now() - began) / hanging.length
    await pause(short ? 1_500 : 5_000)
    redis.resume()
    replies = [...replies, ...hanging]
    result(
      'requests while Redis hangs',
      hanging.every(({ status }) => status === 200 || status === 429),
      `${took.toFixed(1)} ms each`,
    )
    result('both are synced again', await synced())

    process.kill(nodes[0]?.pid as number, 'SIGSTOP')
    replies = [...replies, ...(await send(1, 100))]
    await pause(short ? 1_500 : 5_000)
    process.kill(nodes[0]?.pid as number, 'SIGCONT')
    result('both are synced again after one was stopped', await synced())
    await pause(300)
    replies = [...replies, ...(await send(0, 200)), ...(await send(1, 200))]
    const allowed = reached(replies)
    const answered = replies.every(({ status }) => status === 200 || status === 429)
    result(`limit ${LIMIT} over both`, answered && allowed <= LIMIT * 1.1 && nodes.every(({ up }) => up), `${allowed} allowed`)
  },
})

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
