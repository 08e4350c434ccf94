import type { CounterHost } from '../decide/limiter.ts'
import type { Emitter } from '../report/events.ts'
import type { SyncLoop } from '../sync/exchange/loop.ts'
import type { StoreState } from '../sync/link/state.ts'
import type { StoreTime } from '../time/store-time.ts'

/** The parts of a throttler that its counters have to do with. */
export interface CounterHostParts {
  readonly link: StoreState
  /** The node's own wall clock. */
  readonly localTime: StoreTime
  /** Whether there is a store. */
  readonly connected: boolean
  readonly emitter: Emitter
  /** Made after the counters. */
  readonly loop: SyncLoop
}

/** What the counters of a throttler see of it: the time, the state of the store, whom to tell. */
export function hostOfCounters(parts: CounterHostParts): CounterHost {
  const { link, localTime, connected, emitter } = parts
  return {
    time: link.time,
    localTime,
    connected,
    get nodes() {
      return link.nodes
    },
    get degraded() {
      return parts.loop.degraded
    },
    get silent() {
      return parts.loop.silent
    },
    get recoveredAt() {
      return link.recoveredAt
    },
    get foundAt() {
      return link.foundAt
    },
    due: (counter, slot, at) => parts.loop.due(counter, slot, at),
    changeBlock: (counter, change, until) => parts.loop.changeBlock(counter, change, until),
    blocked: (counter, key, forMs, cause) => {
      counter.stats.blocks[cause]++
      if (emitter.has('blocked')) emitter.emit('blocked', { policy: counter.policy.name, key, for: forMs, cause })
    },
    unblocked: (counter, key, cause) => {
      if (emitter.has('unblocked')) emitter.emit('unblocked', { policy: counter.policy.name, key, cause })
    },
    overflow: (counter) => {
      if (emitter.has('overflow')) emitter.emit('overflow', { policy: counter.policy.name, maxKeys: counter.maxKeys })
    },
  }
}
