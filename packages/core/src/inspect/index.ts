export type { WaitingKey } from '../queue/waits.ts'
export { nearest } from '../report/did-you-mean.ts'
export { invalidOption, missingOption } from '../report/errors.ts'
export { checkOptions } from '../report/names.ts'
export type { RequestRejection } from '../report/requests.ts'
export type { FollowedRules, HeldRules, RulesStatus, RulesVersion } from '../report/rules-status.ts'
export { kindOf } from '../report/show.ts'
export type { StoreStatus, SyncSnapshot } from '../throttler/coordinator.ts'
export { type AuditEntry, type AuditedAction, type AuditLogOptions, auditLog, parseAuditEntry, recordAction } from './audit.ts'
export { cluster } from './cluster.ts'
export { type LimitedLineOptions, limitedLine } from './limited-line.ts'
export { type MergedKeyUsage, type MergedLimitedKey, mergeLimited, mergeTop } from './merged-keys.ts'
export type { ClusterNode, NodeStatus, PolicyStatus } from './node-status.ts'
export type { ProcessEvent } from './recent-events.ts'
export type { RequestHistory, RequestsSnapshot } from './requests.ts'
export {
  type BlockedKey,
  type KeyRejections,
  type KeyUsage,
  type LimitedKey,
  type PolicySnapshot,
  type Snapshot,
  type SnapshotOptions,
  snapshot,
} from './snapshot.ts'
export { parseStatus } from './status-text.ts'
export { type ToldPolicy, toldPolicies } from './told-policies.ts'
