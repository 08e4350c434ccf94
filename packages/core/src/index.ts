export { type Clock, systemClock, type TimerHandle } from './clock.ts'
export type { BlockCause, ExchangeReason, RefusalReason, RefusalSource } from './counter-stats.ts'
export type { Decision } from './decision.ts'
export { type Duration, parseDuration } from './duration.ts'
export { WeirError, type WeirErrorCode } from './errors.ts'
export type { DiagnosticsMessage, EventName, Listener, ThrottlerEvents } from './events.ts'
export {
  type AccessList,
  createGuard,
  EXPOSED_HEADERS,
  type FaceOptions,
  foldRoute,
  Guard,
  type Handled,
  type HeaderKey,
  type HeaderStyle,
  header,
  headerValue,
  type KeyOption,
  type KeySource,
  LIMIT_FIELDS,
  type MatchOption,
  nodeReader,
  type PlannedName,
  type PlannedPolicyOptions,
  type PolicyName,
  type Problem,
  pathOf,
  QUOTA_EXCEEDED,
  type Refusal,
  type RequestReader,
  type SetHeader,
  type SharedThrottlerOptions,
  ThrottledError,
  type ThrottleInput,
  upgradeRefusal,
  type WeirTypes,
} from './http/index.ts'
export { Hub } from './hub.ts'
export { type IpcService, type ServeIpcOptions, serveIpc } from './ipc-serve.ts'
export { type IpcStoreOptions, ipcStore } from './ipc-store.ts'
export type { Logger } from './logger.ts'
export type { BlockOptions } from './manual-blocks.ts'
export { connectToHub, memoryStore } from './memory-store.ts'
export type { ClusterNode, NodeStatus, PolicyStatus } from './node-status.ts'
export type { DecisionReason } from './outcome.ts'
export type { Degraded, Enforcement, GrowingCooldown, Policy, PolicyOptions, WindowShape } from './policy.ts'
export type { BlockedKey, KeyUsage, PolicySnapshot, Snapshot, SnapshotOptions, SyncSnapshot } from './snapshot.ts'
export type {
  Announcement,
  BlockAnnouncement,
  BlockChange,
  BlockState,
  Cell,
  CooldownGrowth,
  HeartbeatReply,
  HeartbeatRequest,
  StatusReport,
  Store,
  StoreConnection,
  StoreNode,
  StorePolicy,
  SyncEntry,
  SyncReply,
  SyncRequest,
  SyncResult,
  TotalAnnouncement,
} from './store.ts'
export type { ThrottlerState } from './store-state.ts'
export type { SyncFailureCause } from './sync-stats.ts'
export { createThrottler, Throttler } from './throttler.ts'
export type { Overflow, ThrottlerOptions } from './throttler-options.ts'
export { endOf, type Ordinal, ordinalAt, spanEnd, startOf } from './time.ts'
