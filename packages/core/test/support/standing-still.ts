import type { StoreConnection, StoreNode } from '../../src/store/contract.ts'
import type { Store } from '../../src/throttler/coordinator.ts'
import type { TestStore } from './stores.ts'
import { type World, WorldClock } from './world.ts'

/** A process that can stand still, as between two invocations of a function. */
export interface StandingStill {
  readonly clock: WorldClock
  readonly store: Store
  /** From now on no timer fires and no reply is read. */
  freeze(): void
  /** Fires the timers that were due meanwhile, and then delivers the replies, as Node.js does. */
  thaw(): Promise<void>
  /** Fails the syncs under way, and the next ones until `connected`, as a connection that died during the freeze does. */
  cut(): void
  connected(): void
}

export function standingStill(world: World, store: TestStore): StandingStill {
  let frozen = false
  let cut = false
  const timers: (() => void)[] = []
  const replies: (() => void)[] = []
  const fail: (() => void)[] = []
  const whenRunning = (queue: (() => void)[], run: () => void): void => {
    if (frozen) queue.push(run)
    else run()
  }
  const clock = new (class extends WorldClock {
    override setTimeout(callback: () => void, delay: number): unknown {
      let cleared = false
      const handle = super.setTimeout(() => whenRunning(timers, () => !cleared && callback()), delay)
      return { handle, clear: () => (cleared = true) }
    }
    override clearTimeout(given: unknown): void {
      if (given === undefined) return
      const { handle, clear } = given as { handle: unknown; clear(): void }
      clear()
      super.clearTimeout(handle)
    }
  })(world, 0, 7_000)
  const lost = () => new Error('The connection was closed.')
  const open = (node: StoreNode): StoreConnection => {
    const connection = store.open({
      ...node,
      id: node.id,
      announced: (announcement) => whenRunning(replies, () => node.announced(announcement)),
    })
    return {
      ...connection,
      close: () => connection.close(),
      sync: (request) =>
        new Promise((resolve, reject) => {
          if (cut) {
            reject(lost())
            return
          }
          const failed = () => reject(lost())
          fail.push(failed)
          connection.sync(request).then(
            (reply) => whenRunning(replies, () => resolve(reply)),
            (error: unknown) => whenRunning(replies, () => reject(error)),
          )
        }),
    }
  }
  return {
    clock,
    store: { kind: store.kind, decides: store.decides, reserves: true, coordinate: store.coordinate, open },
    freeze() {
      frozen = true
    },
    async thaw() {
      frozen = false
      for (const run of timers.splice(0)) run()
      await world.settle()
      for (const run of cut ? fail.splice(0) : replies.splice(0)) run()
      replies.length = 0
      await world.settle()
    },
    cut() {
      cut = true
    },
    connected() {
      cut = false
    },
  }
}
