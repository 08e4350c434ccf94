import { backgroundStore, checkSockets, type Store } from '@weir/core/sync'
import { EtcdConnection } from './exchange/connection.ts'
import { checkOptions, checkTarget, type EtcdStoreOptions, type EtcdTarget } from './gateway/options.ts'
import { Layout } from './keys/layout.ts'

/**
 * Connects processes through etcd 3.4 or newer, over the JSON gateway that each member has on its client port.
 *
 * @param target - the addresses of members of one cluster, or `{ endpoints, username, password, tls }`
 * @throws {WeirError} `WEIR_INVALID_OPTION` or `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * ```ts
 * import { etcdStore } from '@weir/etcd'
 *
 * const store = etcdStore(['http://10.0.0.1:2379', 'http://10.0.0.2:2379'])
 * ```
 */
export function etcdStore(target: EtcdTarget, storeOptions: EtcdStoreOptions = {}): Store {
  checkSockets('etcdStore')
  const options = checkOptions(storeOptions)
  const checked = checkTarget(target)
  const { namespace } = options
  return backgroundStore({
    kind: 'etcd',
    address: `${checked.endpoints.map(({ host }) => host).join(',')} ${namespace}`,
    // Any pure step runs in the process, so etcd needs no code for it.
    decides: () => true,
    reserves: true,
    open: (node) => new EtcdConnection(node, checked, new Layout(namespace), options),
  })
}
