import { storeContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { durableObjectStore } from '../src/index.ts'
import { FakeObjects, polling } from './fake-objects.ts'

/** One object is tried in workerd. */
const SHARDS = 3

storeContract(
  `durableObjectStore with ${SHARDS} objects`,
  () => {
    const objects = new FakeObjects()
    const store = durableObjectStore(objects, { shards: SHARDS })
    return {
      connect: (node) => polling(store.open(node)),
      lose: async () => {
        objects.evict()
        objects.storages.clear()
        // Two lives of an object never begin in one millisecond.
        await new Promise((resolve) => setTimeout(resolve, 2))
      },
      goAway: async () => {
        for (let shard = 0; shard < SHARDS; shard++) objects.down.add(`weir ${shard}`)
        return () => objects.down.clear()
      },
      close: () => {},
    }
  },
  { describe, test: test.concurrent, without: { leftovers: 'storage is cleaned with the next sync' } },
)
