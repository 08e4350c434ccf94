import { describe, test } from 'vitest'
import { manualClock, simulatedStore, storeContract } from '../src/index.ts'

storeContract(
  'simulatedStore without faults',
  () => {
    const clock = manualClock()
    const store = simulatedStore({ time: clock.time })
    return {
      clock,
      pass: (milliseconds) => clock.advance(milliseconds),
      connect: (node) => {
        const connection = store.open(node)
        return {
          sync: async (request) => {
            const reply = connection.sync(request)
            reply.catch(() => {})
            // Virtual time does not move by itself. A round trip takes a millisecond.
            await clock.advance(2)
            return reply
          },
          close: async () => {
            await connection.close()
            await clock.advance(1)
          },
        }
      },
      lose: () => store.lose(),
      goAway: async () => {
        store.fail()
        return () => store.restore()
      },
      leftovers: () => (store.size === 0 ? [] : [`${store.size} items`]),
      close: () => {},
    }
  },
  { describe, test, without: { decisions: 'its nodes exchange counts only', audit: 'a simulation has no users' } },
)
