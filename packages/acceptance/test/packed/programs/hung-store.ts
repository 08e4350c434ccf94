import type { Store } from '@weir/core'
import { backgroundStore } from '@weir/core/sync'

const never = (): Promise<never> => new Promise(() => {})
/** A store that answers nothing, and has nothing by which a process lives. */
export const HUNG: Store = backgroundStore({
  kind: 'hung',
  decides: () => true,
  open: () => ({ sync: never, decider: async () => ({ partOf: () => 0, decide: never }), close: async () => {} }),
})
/** A policy that asks it, and waits no longer than it has to. */
export const HELD = { limit: 1, interval: '1h', key: 'all', coordination: 'central', failMode: 'closed', storeTimeout: 300 } as const
