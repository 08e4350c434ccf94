import { setTimeout as sleep } from 'node:timers/promises'
import { attack } from '../harness/attack.ts'

const MOST = 600
/** Bytes that the process itself may use in the meantime, for example for compiled code. */
const SLACK = 50_000

/** Passes long keys to `check`. Weir must bound them too, and keep them distinct. */
export const longKeys = attack<null>({
  name: 'long-keys',
  targets: ['core'],
  stores: ['none', 'redis'],
  short: { stores: ['none'] },

  async victim(given) {
    const { createThrottler } = await import('@weir/core')
    const { storeOf } = await import('../harness/serve.ts')
    const policies = [{ limit: 1, interval: '1h' as const }]
    const throttler = createThrottler({ policies, ...(await storeOf(given)) })
    // Objects of this turn of the event loop, and code that is being compiled, are collected only in later turns.
    const heap = async (): Promise<number> => {
      for (let turn = 0; turn < 4; turn++) {
        await sleep(5)
        globalThis.gc?.()
      }
      return process.memoryUsage().heapUsed
    }
    const answer = async (size: number): Promise<unknown> => {
      const before = await heap()
      const count = size > 100_000 ? 300 : 1_000
      let distinct = 0
      let again = 0
      // Flat strings, as a parser makes them.
      const key = (i: number): string => Buffer.concat([Buffer.alloc(size, 'k'), Buffer.from(`${size} ${i}`)]).toString('latin1')
      for (let i = 0; i < count; i++) if (throttler.check(key(i)).allowed) distinct++
      for (let i = 0; i < count; i++) if (throttler.check(key(i)).allowed) again++
      return { distinct, again, count, bytes: Math.max(0, (await heap()) - before - SLACK) / count }
    }
    return { answer }
  },

  async run({ start, result, short }) {
    const victim = await start(null, { heap: 1_500 })
    // Node.js compiles and recompiles code during the first thousands of requests.
    for (const size of [10, 20, 30]) await victim.ask(size)
    for (const size of short ? [10_000, 100_000] : [10_000, 1_000_000]) {
      const { distinct, again, count, bytes } = await victim.ask<{ distinct: number; again: number; count: number; bytes: number }>(size)
      result(`${count} keys of ${size / 1000} KB`, bytes <= MOST, `${Math.round(bytes)} B a key, at most ${MOST}`)
      result(`${count} keys of ${size / 1000} KB that differ at their ends`, distinct === count && again === 0, `${distinct} told apart`)
    }
  },
})
