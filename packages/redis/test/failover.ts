import { createThrottler, type Store, type Throttler } from '@weir/core'
import type { HeartbeatReply } from '@weir/core/sync'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { until } from '@weir/tooling/redis-servers'
import type { SentinelSetup } from '@weir/tooling/redis-topologies'
import { expect, test } from 'vitest'

const QUOTA = { limit: 60, interval: '1h', coordination: 'leased', failMode: 'closed', storeTimeout: '500ms' } as const

/**
 * Sends requests to the throttlers in turn until `most` are allowed, or none is for as long as quota may be withheld. Returns the number
 * allowed.
 */
async function allowed(throttlers: readonly Throttler[], most: number): Promise<number> {
  let count = 0
  let last = Date.now()
  for (let i = 0; count < most && Date.now() - last < WITHHELD; i++) {
    const { allowed } = await (throttlers[i % throttlers.length] as Throttler).checkAsync('k')
    if (allowed) {
      count++
      last = Date.now()
    } else await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return count
}

/** Milliseconds: four heartbeats, and the heartbeats that processes need to see each other. */
const WITHHELD = 8_000

/**
 * A case for each client behind Sentinels. It must be the last one of its file, because it kills the primary.
 *
 * @param beat sends a heartbeat when the new primary has just been chosen
 */
export function followsFailovers(
  setup: () => SentinelSetup,
  store: (namespace: string) => Store,
  beat: (node: TestNode) => Promise<HeartbeatReply | undefined> = (node) => node.beat(),
): void {
  test('after a failover to a replica that lags, what it lacks is noticed, and quota that was taken ahead is not granted twice', {
    timeout: 90_000,
  }, async () => {
    const node = new TestNode(store('failover'))
    await node.eventually(() => node.count('k', 1))
    const throttlers = [0, 1].map(() => createThrottler({ policies: [QUOTA], store: store('failover') }).start())
    await until(() => throttlers.every(({ state }) => state === 'synced'), 'nodes that take quota ahead are there')
    const early = await allowed(throttlers, 10)
    const before = await node.beat()
    const old = await setup().primary()
    // The other servers lag: they receive no write from now on.
    for (const server of setup().servers) if (server !== old) await server.command('replicaof', '127.0.0.1', '1')
    expect(await node.count('k', 5)).toBe(5)
    const lagged = await allowed(throttlers, 30)
    expect([early, lagged]).toEqual([10, 30])
    await old.kill()
    await until(async () => (await setup().primary()) !== old, 'Sentinels have chosen another primary', 30_000)
    const after = await node.eventually(() => beat(node))
    expect(after.generation).not.toBe(before.generation)
    expect(await node.eventually(() => node.count('k', 5))).toBe(5)
    // The new primary has the counts of about ten units. Exactly the limit is allowed all the same.
    await until(() => throttlers.every(({ state }) => state === 'synced'), 'nodes that take quota ahead are there again', 30_000)
    expect(early + lagged + (await allowed(throttlers, 100))).toBe(60)
    await Promise.all([node.close(), ...throttlers.map((throttler) => throttler.close())])
  })
}
