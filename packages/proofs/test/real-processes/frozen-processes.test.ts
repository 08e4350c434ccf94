import { FROM_SOURCE } from '@weir/bench/programs'
import { type FleetOptions, runFleet } from '@weir/bench/runtimes/fleet'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, test } from 'vitest'

const LIMIT = 8

let server: RedisServer
beforeAll(async () => {
  // Connections die while their processes are frozen.
  server = await RedisServer.start({ arguments: ['--timeout', '1'] })
})
afterAll(() => server.stop())

test('six processes that are frozen between requests keep a limit over Redis and report no outage, though it closes their connections', async () => {
  const options = {
    place: { kind: 'redis', url: server.url },
    coordination: 'central',
    afterFreeze: 'continue',
    // A busy machine may delay answers beyond the timeout of a request.
    failMode: 'closed',
    limit: LIMIT,
    interval: 3_000,
    processes: 6,
    times: 2,
    intervals: 1,
    frozen: true,
    program: { execArgv: FROM_SOURCE },
  } satisfies FleetOptions
  const { allowed, storeDown } = await runFleet(options)
  expect(storeDown).toEqual([])
  expect(allowed[0]).toBeGreaterThan(0)
  expect(allowed[0]).toBeLessThanOrEqual(LIMIT)
}, 120_000)
