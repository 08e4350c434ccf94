export { etcdStore } from './etcd-store.ts'
export type { EtcdStoreOptions, EtcdTarget, EtcdTls } from './gateway/options.ts'
export { type EtcdRules, type EtcdRulesOptions, etcdRules } from './rules/rules.ts'
