export type { Decision } from './decide/decision.ts'
export type { DecisionReason } from './decide/outcome.ts'
export type { Degraded, Enforcement, GrowingCooldown, Policy, PolicyOptions, WindowShape } from './decide/policy.ts'
export type { BlockCause, ExchangeReason, RefusalReason, RefusalSource } from './decide/stats.ts'
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
export { Hub } from './hub/hub.ts'
export { connectToHub, memoryStore } from './hub/memory-store.ts'
export type { ClusterNode, NodeStatus, PolicyStatus } from './inspect/node-status.ts'
export type { BlockedKey, KeyUsage, PolicySnapshot, Snapshot, SnapshotOptions, SyncSnapshot } from './inspect/snapshot.ts'
export { type IpcService, type ServeIpcOptions, serveIpc } from './ipc/serve.ts'
export { type IpcStoreOptions, ipcStore } from './ipc/store.ts'
export { WeirError, type WeirErrorCode } from './report/errors.ts'
export type { DiagnosticsMessage, EventName, Listener, ThrottlerEvents } from './report/events.ts'
export type { Logger } from './report/logger.ts'
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
} from './store/contract.ts'
export type { ThrottlerState } from './sync/link/state.ts'
export type { SyncFailureCause } from './sync/link/stats.ts'
export type { BlockOptions } from './throttler/manual-blocks.ts'
export type { Overflow, ThrottlerOptions } from './throttler/options.ts'
export { createThrottler, Throttler } from './throttler/throttler.ts'
export { type Clock, systemClock, type TimerHandle } from './time/clock.ts'
export { type Duration, parseDuration } from './time/duration.ts'
export { endOf, type Ordinal, ordinalAt, spanEnd, startOf } from './time/intervals.ts'
