import { closedPart, invalidOption, WeirError } from '../report/errors.ts'
import type { Decider, StoreConnection, StoreNode, SyncReply, SyncRequest } from '../store/contract.ts'
import { backgroundStore } from '../sync/coordinator.ts'
import type { Store } from '../throttler/coordinator.ts'
import { loadCode } from '../time/load-code.ts'
import { Hub } from './hub.ts'

/**
 * A store in the memory of this process, for one throttler or for several that share their counts. It needs no server, and its data is lost
 * when the process ends. Use `ipcStore` for the processes of one machine and `redisStore` for many machines.
 *
 * @example
 * const throttler = createThrottler({ policies: [{ limit: 100, interval: '1m' }], store: memoryStore() })
 *
 * @throws WeirError `WEIR_INVALID_OPTION` for any option, because it has none
 *
 * @param given - a hub to use. Given in tests only, to share or to inspect it
 */
export function memoryStore(given?: Hub): Store {
  if (given !== undefined && typeof given?.exchange !== 'function')
    throw invalidOption('memoryStore', given, 'memoryStore() without options')
  let hub = given
  return backgroundStore({
    kind: 'memory',
    decides: () => true,
    reserves: true,
    open: (node) => {
      // The hub uses its throttler's clock, which is not the system's if the throttler has its own.
      hub ??= new Hub(node.clock)
      return connectToHub(hub, node)
    },
  })
}

/** A throttler's connection to a hub in the same process. */
export function connectToHub(hub: Hub, node: StoreNode): StoreConnection {
  let closed = false
  const unlisten = hub.listen((announcement) => node.announced(announcement))
  return {
    sync(request: SyncRequest): Promise<SyncReply> {
      if (closed) return Promise.reject(closedPart('The connection to the store'))
      try {
        return Promise.resolve(hub.exchange(node.id, request))
      } catch (cause) {
        return Promise.reject(
          new WeirError(
            'WEIR_STORE_REPLY',
            'The memory store could not read a request. Use the same version of @weir/core in all packages.',
            { cause },
          ),
        )
      }
    },
    async decider(): Promise<Decider> {
      // Loaded when a policy needs it, so that applications without such a policy don't load it.
      const { HubDecisions, deciderOf } = await loadCode(() => import('./decider.ts'))
      return deciderOf(
        hub.decisions((clock) => new HubDecisions(clock)),
        node.id,
      )
    },
    // Core calls it as code that is being loaded.
    audit: async () => (await import('./audit.ts')).auditOf(hub),
    close(): Promise<void> {
      closed = true
      unlisten()
      hub.leave(node.id)
      return Promise.resolve()
    },
  }
}
