import { expect, test } from 'vitest'
import { fixedWindow, slidingCounter, slidingWindow, tokenBucket } from '../../src/index.ts'
import { offer, scene } from '../support/nodes.ts'

const LIMIT = 1_000
/** Units that drain from a bucket of an hour in the ten seconds of a case. */
const DRAINED = 3

test.each([
  ['fixedWindow()', { algorithm: fixedWindow() }],
  ['fixedWindow() in spans', { algorithm: fixedWindow(), coordination: 'periodic', spans: 1_000 }],
  ['slidingCounter() in spans', { algorithm: slidingCounter(), coordination: 'periodic', spans: 1_000 }],
  ['slidingWindow()', { algorithm: slidingWindow() }],
  ['tokenBucket()', { algorithm: tokenBucket(), interval: '1h' }],
] as const)(
  'a store that loses its data while a key is exchanged has all that was allowed once nodes have heard of it: %s',
  async (name, rule) => {
    for (let moment = 0; moment < 60; moment++) {
      const { world, node, store } = scene({ seed: moment + 1 })
      store.roundTrip = 40
      const policy = { limit: LIMIT, interval: '20s', ...rule } as const
      const [busy, leaving] = [node(policy), node(policy)]
      for (const one of [busy, leaving]) one.start()
      await world.run(100)
      let allowed = offer(busy, 'a', 400) + offer(leaving, 'a', 200)
      await world.run(2_000)
      store.hub.lose()
      const close = async (one: typeof busy): Promise<void> => {
        const closing = one.close()
        await world.run(1_500)
        await closing
      }
      for (let i = 0; i < moment; i++) {
        allowed += offer(busy, 'a', 1)
        await world.run(20)
      }
      // In some cases `busy` has already sent its units again, and in some the heartbeat of `leaving` is in flight.
      allowed += offer(leaving, 'a', 1)
      await close(leaving)
      await close(busy)
      const fresh = node(policy)
      fresh.start()
      await world.run(500)
      const usage = fresh.usage('a')
      await world.run(500)
      const [{ used = 0, source } = {}] = await usage
      expect(source).toBe('store')
      expect(used, `lost at ${moment}`).toBeLessThanOrEqual(allowed)
      expect(used, `lost at ${moment}`).toBeGreaterThanOrEqual(name === 'tokenBucket()' ? allowed - DRAINED : allowed)
    }
  },
)
