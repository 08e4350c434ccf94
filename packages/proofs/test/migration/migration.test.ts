import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { answersOf, type Case } from './beside.ts'
import { CASES as EXPRESS, REDIS_CASES as EXPRESS_REDIS } from './express-rate-limit.ts'
import { CASES as FASTIFY } from './fastify-rate-limit.ts'
import { CASES as KOA } from './koa-ratelimit.ts'
import { CASES as NEST } from './nestjs-throttler.ts'
import { CASES as FLEXIBLE } from './rate-limiter-flexible.ts'
import { startRedis } from './redis.ts'
import { optionsOf, rowsOf } from './rows.ts'

const PEERS: readonly (readonly [peer: string, cases: readonly Case[]])[] = [
  ['express-rate-limit', EXPRESS],
  ['rate-limit-redis', EXPRESS_REDIS],
  ['@fastify/rate-limit', FASTIFY],
  ['koa-ratelimit', KOA],
  ['@nestjs/throttler', NEST],
]

beforeAll(startRedis, 60_000)

// `Date` is fixed at the middle of an hour, so that no test is at the boundary of a window.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: new Date('2027-03-01T10:37:07.500Z') }))
afterEach(() => void vi.useRealTimers())

for (const [peer, cases] of PEERS) {
  describe(`beside ${peer}`, () => {
    test.each(cases.map((one) => [one.options.join(', '), one] as const))(
      '%s',
      async (_, { peer: theirs, weir, requests, statuses, same }) => {
        const before = await answersOf(await theirs(), requests)
        const after = await answersOf(await weir(), requests)
        expect(before.map(({ status }) => status)).toEqual(statuses)
        expect(after.map(({ status }) => status)).toEqual(statuses)
        if (same !== undefined) expect(after.map(same)).toEqual(before.map(same))
      },
    )
  })
}

describe('beside rate-limiter-flexible', () => {
  test.each(FLEXIBLE.map((one) => [one.options.join(', '), one] as const))('%s', async (_, { peer, weir, result }) => {
    vi.useRealTimers()
    expect(await peer()).toEqual(result)
    expect(await weir()).toEqual(result)
  })
})

describe('the page', () => {
  const cases: Readonly<Record<string, readonly string[]>> = {
    ...Object.fromEntries(PEERS.map(([peer, list]) => [peer, list.flatMap(({ options }) => options)])),
    'rate-limiter-flexible': FLEXIBLE.flatMap(({ options }) => options),
  }

  test.each([
    'express-rate-limit',
    'rate-limit-redis',
    '@fastify/rate-limit',
    'koa-ratelimit',
    'rate-limiter-flexible',
    '@nestjs/throttler',
  ])('has a row for each option of %s', (peer) => {
    const options = optionsOf(peer)
    expect(options.length).toBeGreaterThan(2)
    const rows = rowsOf(peer)
    expect(options.filter((option) => !rows.some(({ left }) => left.has(option)))).toEqual([])
  })

  test.each(Object.entries(cases))('claims of %s no more than what is tried here, or says that it is not here', (peer, tried) => {
    const names = new Set(tried.map((option) => option.replace(/[:( ].*/, '')))
    const untried = rowsOf(peer).filter(
      ({ left, right }) => !/^(not here|not needed)/.test(right) && ![...left].some((one) => names.has(one)),
    )
    expect(untried.map(({ text }) => text)).toEqual([])
  })
})
