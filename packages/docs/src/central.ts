import { createThrottler, type Store } from '@weir/core'
import { connectToHub, Hub } from '@weir/core/memory'
import { backgroundStore } from '@weir/core/sync'
import { NodeClock, type Scenario, type VirtualTime } from '@weir/testing'

/** Nodes of a simulation that ask a store for each request. */
export interface Central {
  readonly node: NonNullable<Scenario['node']>
  /** What they have asked so far. */
  asked(): number
}

/** @param roundTrip - from every node to the store, in milliseconds */
export async function central(roundTrip: number): Promise<Central> {
  let shared: Store | undefined
  let questions = 0

  const storeOf = (time: VirtualTime): Store => {
    const hub = new Hub(new NodeClock(time, { resolution: 0 }))
    const travels = <Reply>(ask: () => Promise<Reply>): Promise<Reply> =>
      new Promise((resolve, reject) => {
        const arrive = (): void => {
          ask().then((reply) => time.at(time.now + roundTrip / 2, () => resolve(reply), true), reject)
        }
        time.at(time.now + roundTrip / 2, arrive, true)
      })
    return backgroundStore({
      kind: 'simulated',
      decides: () => true,
      open(node) {
        const connection = connectToHub(hub, node)
        return {
          sync: (request) => travels(() => connection.sync(request)),
          close: () => connection.close(),
          async decider() {
            const decider = await connection.decider?.()
            if (decider === undefined) throw new Error('The hub does not decide')
            return {
              partOf: (key) => decider.partOf(key),
              decide(request) {
                questions++
                return travels(() => decider.decide(request))
              },
            }
          },
        }
      },
    })
  }

  return {
    node({ policy, clock, random, time }) {
      shared ??= storeOf(time)
      const throttler = createThrottler({ policies: [policy], store: shared, clock, random })
      // Few units for many nodes are meant.
      throttler.on('warning', () => {})
      return throttler
    },
    asked: () => questions,
  }
}
