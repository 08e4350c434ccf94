export type { StoreStatus, SyncSnapshot } from '../throttler/coordinator.ts'
export { cluster } from './cluster.ts'
export type { ClusterNode, NodeStatus, PolicyStatus } from './node-status.ts'
export { type BlockedKey, type KeyUsage, type PolicySnapshot, type Snapshot, type SnapshotOptions, snapshot } from './snapshot.ts'
