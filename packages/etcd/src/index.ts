export { etcdStore } from './etcd-store.ts'
export type { EtcdStoreOptions, EtcdTarget, EtcdTls } from './gateway/options.ts'
