import { show, WeirError } from '../../report/errors.ts'
import type { MeetingPoint, StoreConnection, StoreNode, SyncReply, SyncRequest } from '../../store/contract.ts'
import { checkReply, type Nonsense } from './store-reply.ts'

/**
 * Opens a store that may break its contract. If `open` throws or returns no connection, syncs fail with that error, and no decision throws.
 */
export function openStore(store: MeetingPoint, node: StoreNode): StoreConnection {
  try {
    const connection: unknown = store.open(node)
    if (typeof (connection as Partial<StoreConnection> | null | undefined)?.sync === 'function') {
      return connection as StoreConnection
    }
    const what = typeof connection === 'object' || typeof connection === 'function' ? 'something without "sync"' : show(connection)
    return neverOpened(
      new WeirError('WEIR_STORE_REPLY', `The store's open() returned ${what}. Return a connection: an object with sync() and close().`),
    )
  } catch (error) {
    return neverOpened(error)
  }
}

/** Syncs. A breach of the store's contract (a throw, an invalid reply) is a failed sync, so that it doesn't end the process. */
export async function syncOf(connection: StoreConnection, request: SyncRequest, nonsense: Nonsense): Promise<SyncReply> {
  return checkReply(await connection.sync(request), request, nonsense)
}

/** Closes a connection that may throw. */
export async function closeOf(connection: StoreConnection): Promise<void> {
  await connection.close()
}

/** The name of a store in messages. */
export function kindOf(store: MeetingPoint): string {
  try {
    return typeof store.kind === 'string' ? store.kind : 'store'
  } catch {
    return 'store'
  }
}

function neverOpened(error: unknown): StoreConnection {
  return { sync: () => Promise.reject(error), close: () => Promise.resolve() }
}
