import type { Store } from '@weir/core'
import { backgroundStore } from '@weir/core/sync'

const never = (): Promise<never> => new Promise(() => {})
/** A store that never answers, and does not keep the process alive. */
export const HUNG: Store = backgroundStore({
  kind: 'hung',
  decides: () => true,
  open: () => ({ sync: never, decider: async () => ({ partOf: () => 0, decide: never }), close: async () => {} }),
})
/** A policy that waits for this store, with a short timeout. */
export const HELD = { limit: 1, interval: '1h', key: 'all', coordination: 'central', failMode: 'closed', storeTimeout: 300 } as const
