import { attack } from '../harness/attack.ts'
import { mutated, withTime } from '../harness/mutate.ts'
import { Random } from '../harness/random.ts'
import { ruleOf } from '../harness/rule.ts'

const LIMIT = 5
interface Found {
  readonly replies: number
  readonly allowed: number
  readonly runs: number
  readonly state: string
  readonly grown: number
  readonly odd: string
  /** The last value of the store. It is written before it is used, so that it is shown even if the process ends. */
  readonly last: string
}

/** Sends nearly valid replies and announcements of a store. */
export const fuzzStore = attack<null>({
  name: 'fuzz-store',
  targets: ['core'],

  async victim() {
    const { createThrottler, memoryStore } = await import('@weir/core')
    const { backgroundStore } = await import('@weir/core/sync')
    const heap = (): number => {
      globalThis.gc?.()
      return process.memoryUsage().heapUsed
    }
    const answer = async ({ seed, time }: { seed: number; time: number }): Promise<Found> => {
      const random = new Random(seed)
      const inner = memoryStore()
      let lies = true
      let replies = 0
      let last = ''
      const store = backgroundStore({
        kind: 'lying',
        open(node: Parameters<typeof inner.open>[0]) {
          const announced = (genuine: unknown): void => {
            const announcement = lies && random.chance(0.5) ? mutated(random, genuine) : genuine
            if (announcement !== genuine) say('announcement', announcement)
            node.announced(announcement as never)
          }
          const connection = inner.open({ ...node, clock: node.clock, id: node.id, announced })
          return {
            async sync(request: Parameters<typeof connection.sync>[0]) {
              const reply = await connection.sync(request)
              replies++
              if (!lies || random.chance(0.3)) return reply
              const lie = withTime(mutated(random, reply), reply)
              say('reply', lie)
              return lie as never
            },
            close: () => connection.close(),
          }
        },
      })
      // Written before it is used, because it may end the process and must be replayed then.
      const say = (what: string, value: unknown): void => {
        try {
          last = `${what} ${JSON.stringify(value, (_, part) => (['symbol', 'bigint', 'function', 'undefined', 'number'].includes(typeof part) ? String(part) : part))?.slice(0, 300)}`
        } catch {
          // The value may contain a getter that throws, which is meant for the throttler.
          last = `${what} that can't be shown`
        }
      }
      process.on('exit', () => console.error(`[WEIR_ATTACK] last said: ${last}`))
      const before = heap()
      let allowed = 0
      let runs = 0
      let odd = ''
      let state = ''
      const deadline = Date.now() + time
      while (Date.now() < deadline) {
        lies = true
        const kinds = ['fixed', 'sliding']
        const policies = await Promise.all(
          kinds.map(async (kind) => ({ name: kind, limit: LIMIT, interval: '1h', cooldown: '1h', ...(await ruleOf(kind)) }) as never),
        )
        const throttler = createThrottler({ policies, store, heartbeat: 100, random: () => random.next() }).start()
        let passed = 0
        for (let round = 0; round < 12; round++) {
          for (let i = 0; i < 3; i++) {
            const decision = throttler.check(`k${runs}`)
            if (decision.allowed) passed++
            if (!(decision.remaining >= 0 && decision.resetAfterMs >= 0)) odd ||= `remaining ${decision.remaining} after ${last}`
            throttler.check(`k${runs} ${round} ${i}`)
          }
          if (round === 3) throttler.block(`b${runs}`, '1h')
          await new Promise((resolve) => setTimeout(resolve, 8))
        }
        if (passed > LIMIT) odd ||= `${passed} of limit ${LIMIT} after ${last}`
        allowed = Math.max(allowed, passed)
        lies = false
        for (let i = 0; i < 100 && throttler.state !== 'synced'; i++) await new Promise((resolve) => setTimeout(resolve, 20))
        if (throttler.state !== 'synced') state ||= `${throttler.state} after ${last}`
        await throttler.close()
        runs++
      }
      return { replies, allowed, runs, state, grown: heap() - before, odd, last }
    }
    return { answer: answer as never }
  },

  async run({ start, result, random, time }) {
    const victim = await start(null, { heap: 256 })
    const found = await victim.ask<Found>({ seed: random.below(1e9), time }, time + 60_000).catch(() => undefined)
    if (found === undefined) return result('replies', false, `${victim.ended} ${victim.output.match(/last said: .*/)?.[0] ?? ''}`)
    const { replies, allowed, runs, state, grown, odd } = found
    const held = odd === '' && state === '' && grown < 40e6
    result(
      `${replies} replies to ${runs} throttlers`,
      held,
      odd || state || `${allowed} of limit ${LIMIT}, ${(grown / 1e6).toFixed(1)} MB more`,
    )
  },
})
