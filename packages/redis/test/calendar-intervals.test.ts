import { type Calendar, calendar, createThrottler, type EpochTime, type Throttler } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { RedisServer, until } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace } from './fixtures.ts'

let server: RedisServer
let client: Redis
const open: Throttler[] = []
beforeAll(async () => {
  server = await RedisServer.start()
  client = new Redis(server.url)
}, 60_000)
afterEach(() => Promise.all(open.splice(0).map((throttler) => throttler.close())))
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

const LIMIT = 20
/** The factor by which time is faster than the calendar's own: a day takes two seconds. */
const FASTER = 43_200

/** Days around a change of the clocks, short enough that several of them pass during a test. */
function fastDays(timeZone: string, from: string): Calendar {
  const days = calendar('day', { timeZone })
  const [origin, begin] = [Date.now(), Date.parse(from)]
  const slow = (time: number) => begin + (time - origin) * FASTER
  const fast = (time: number) => origin + (time - begin) / FASTER
  const shortened = ({ ordinal, start, end }: ReturnType<Calendar['at']>) => ({ ordinal, start: fast(start), end: fast(end) })
  // Ordinals that are ahead of the clock.
  const usual = days.usual / FASTER
  const ahead = Math.ceil(origin / usual) + 2 - days.at(begin).ordinal
  const moved = (one: ReturnType<Calendar['at']>) => ({ ...shortened(one), ordinal: (one.ordinal + ahead) as typeof one.ordinal })
  const one: Calendar = {
    id: `fast-${timeZone}`,
    usual,
    at: (time) => moved(days.at(slow(time))),
    of: (ordinal) => moved(days.of((ordinal - ahead) as typeof ordinal)),
    over: (time): EpochTime => ({
      at: (monotonic) => {
        const { ordinal, start, end } = one.at(time.at(monotonic))
        return ordinal * usual + Math.min(((time.at(monotonic) - start) / (end - start)) * usual, usual - 1 / 64)
      },
      monotonicAt: (then) => {
        const { ordinal, start, end } = one.of(Math.floor(then / usual) as ReturnType<Calendar['at']>['ordinal'])
        return time.monotonicAt(start + ((then - ordinal * usual) / usual) * (end - start))
      },
      uncertainty: (monotonic) => time.uncertainty(monotonic),
    }),
  }
  return one
}

async function nodes(count: number, interval: Calendar, coordination: 'background' | 'leased' | 'central', namespace = freshNamespace()) {
  const policy = { limit: LIMIT, interval, coordination, storeTimeout: coordination === 'background' ? undefined : '30s' } as const
  const { storeTimeout, ...rest } = policy
  const made = Array.from({ length: count }, () => {
    // The timeout is long, so that a busy machine doesn't look like an outage.
    const store = redisStore(server.url, { namespace, timeout: 30_000 })
    const policies = [storeTimeout === undefined ? rest : { ...rest, storeTimeout }]
    const throttler = createThrottler({ policies, heartbeat: 200, store }).start()
    open.push(throttler)
    return throttler
  })
  for (const one of made) await until(() => one.state === 'synced' && snapshot(one).nodes >= count, 'all know of each other')
  return { namespace, made }
}

describe.each(['background', 'leased', 'central'] as const)('intervals of a calendar in Redis, %s', (coordination) => {
  test('what is counted lives until the interval is over, and no longer than some of them', async () => {
    const monthly = calendar('month', { timeZone: 'Asia/Kathmandu' })
    const { made, namespace } = await nodes(2, monthly, coordination)
    const [a, b] = made as [Throttler, Throttler]
    // The share of one of two processes. It has this share even if the machine is so busy that a reply is late.
    const first = await a.checkAsync('k', LIMIT / 2)
    expect(first.allowed).toBe(true)
    let allowed = LIMIT / 2
    await until(async () => (await a.usage('k'))[0]?.used === LIMIT / 2, 'the first units are told')
    const ask = async (): Promise<void> => {
      if ((await b.checkAsync('k')).allowed) allowed++
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    for (let i = 0; i < 20; i++) await ask()
    // Unused leases of the other process return once it learns that they are needed.
    if (coordination === 'leased') for (let i = 0; i < 500 && allowed < LIMIT; i++) await ask()
    if (coordination !== 'background') expect(allowed).toBe(LIMIT)
    // Requests are sent in sequence. If they came at once, more could be allowed before the store's replies arrive.
    expect(allowed).toBeLessThan(LIMIT + 10)
    const { start, end } = monthly.at(Date.now())
    const rejected = await b.checkAsync('k')
    expect(rejected.allowed).toBe(false)
    expect(Math.abs(rejected.retryAfterMs - (end - Date.now()))).toBeLessThan(2_000)
    await until(async () => (await a.usage('k'))[0]?.used === allowed, 'all is told')
    const keys = await client.keys(`${namespace}:*k*`)
    expect(keys.length).toBeGreaterThan(0)
    for (const key of keys) {
      const left = await client.pttl(key)
      expect(left, key).toBeGreaterThan(end - Date.now() - 1_000)
      expect(left, key).toBeLessThan(6 * (end - start))
    }
    a.refund(first, LIMIT / 2)
    await until(async () => (await b.usage('k'))[0]?.used === allowed - LIMIT / 2, 'what came back is told')
    await until(async () => (await a.checkAsync('k')).allowed, 'there is room again')
  }, 30_000)

  test('each has its limit, through a change of clocks', async () => {
    const days = fastDays('Europe/Prague', '2026-03-27T12:00:00Z')
    const { made } = await nodes(2, days, coordination)
    const perDay = new Map<number, number>()
    const first = days.at(Date.now()).ordinal
    // Requests are spread, so that some come right before and after each midnight.
    while (days.at(Date.now()).ordinal < first + 4) {
      await Promise.all(
        made.map(async (node) => {
          const before = days.at(Date.now()).ordinal
          const { allowed } = await node.checkAsync('k')
          // For a request that started in one interval and ended in the next, the interval isn't known.
          if (allowed && days.at(Date.now()).ordinal === before) perDay.set(before, (perDay.get(before) ?? 0) + 1)
        }),
      )
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    for (const ordinal of [first + 1, first + 2, first + 3]) {
      // The units that two processes keep back, and one each around midnight.
      expect(perDay.get(ordinal)).toBeLessThanOrEqual(coordination === 'background' ? LIMIT + 4 : LIMIT + 2)
      expect(perDay.get(ordinal)).toBeGreaterThanOrEqual(LIMIT - 2)
    }
  }, 60_000)
})
