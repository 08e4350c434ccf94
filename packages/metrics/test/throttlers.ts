import { createThrottler, memoryStore, type Store, systemClock, type Throttler } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { Hub } from '@weir/core/memory'
import { onTestFinished } from 'vitest'

/** A throttler that has allowed requests, rejected requests, blocked a key and synced with a store. */
export async function busyThrottler(store: Store = memoryStore(new Hub(systemClock))): Promise<Throttler> {
  const throttler = createThrottler({
    store,
    policies: [
      { name: 'user', limit: 10, interval: '1h' },
      { name: 'tenant "a" \\ b', limit: 1_000, interval: '1h', cooldown: '1m' },
    ],
  })
  onTestFinished(() => throttler.close())
  throttler.start()
  for (let i = 0; i < 25; i++) throttler.check('secret-key')
  throttler.block('secret-key', '1h', { policy: 'user' })
  const deadline = Date.now() + 5_000
  while (snapshot(throttler).sync.entries === 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5))
  return throttler
}

/** A store that is down until `let(true)`. */
export function awayStore(): Store & { let: (up: boolean) => void } {
  const inner = memoryStore(new Hub(systemClock))
  let up = false
  return {
    kind: 'away',
    coordinate: inner.coordinate,
    let(value) {
      up = value
    },
    open(node) {
      const connection = inner.open(node)
      return {
        sync: (request) => (up ? connection.sync(request) : Promise.reject(new Error('away'))),
        close: () => connection.close(),
      }
    },
  }
}
