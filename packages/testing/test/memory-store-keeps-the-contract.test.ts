import { memoryStore, systemClock } from '@weir/core'
import { Hub } from '@weir/core/memory'
import { describe, test } from 'vitest'
import { storeContract } from '../src/index.ts'

storeContract(
  'memoryStore',
  () => {
    const hub = new Hub(systemClock)
    const store = memoryStore(hub)
    return {
      connect: (node) => store.open(node),
      lose: () => hub.lose(),
      leftovers: () => (hub.size === 0 ? [] : [`${hub.size} items`]),
      close: () => {},
    }
  },
  { describe, test, without: { goAway: 'it is in the same process' } },
)
