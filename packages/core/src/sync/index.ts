export type {
  Announcement,
  AskAnnouncement,
  BlockAnnouncement,
  BlockChange,
  BlockState,
  Cell,
  HeartbeatReply,
  HeartbeatRequest,
  MeetingPoint,
  StatusReport,
  StoreConnection,
  StoreNode,
  StorePolicy,
  SyncEntry,
  SyncReply,
  SyncRequest,
  SyncResult,
  TotalAnnouncement,
} from '../store/contract.ts'
export { lastCellOf, RESET_CELLS } from '../store/contract.ts'
export type { LeaseAsk, LeaseNotice, LeaseReply } from '../store/leases/ask.ts'
export type { Store } from '../throttler/coordinator.ts'
export type { CooldownGrowth } from '../time/cooldown-growth.ts'
export { endOf, type Ordinal, ordinalAt, spanEnd, startOf } from '../time/intervals.ts'
export { backgroundStore } from './coordinator.ts'
