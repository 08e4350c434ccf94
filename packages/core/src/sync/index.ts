export { CALENDAR_STEP } from '../algorithms/fixed-window/calendar-step.ts'
export { closedPart, codeNotLoaded, invalidOption } from '../report/errors.ts'
export { checkOptions } from '../report/names.ts'
export { kindOf } from '../report/show.ts'
export type {
  Announcement,
  AskAnnouncement,
  AtomicStep,
  AuditLog,
  BlockAnnouncement,
  BlockChange,
  BlockState,
  Cell,
  Decide,
  DecidedPolicy,
  Decider,
  HeartbeatReply,
  HeartbeatRequest,
  MeetingPoint,
  OpenReservation,
  Question,
  RulesReport,
  Shape,
  StatusReport,
  StoreConnection,
  StoreNode,
  StorePolicy,
  SyncEntry,
  SyncReply,
  SyncRequest,
  SyncResult,
  TotalAnnouncement,
  Verdict,
} from '../store/contract.ts'
export {
  AUDITED_FOR,
  BUCKET_GROUPS,
  BUCKET_PARTS,
  boundedLog,
  changeBy,
  FINE_PARTS,
  isDone,
  isState,
  LONGEST_AUDITED,
  laneOf,
  lastCellOf,
  lifetimeBy,
  MOST_AUDITED,
  MOST_OPEN,
  RESET_CELLS,
  shapeOf,
  takeBy,
} from '../store/contract.ts'
export { HELD, type LeaseAsk, type LeaseNotice, type LeaseReply, type LeaseReturn, MOST_RETURNS } from '../store/leases/ask.ts'
export { lifeOf, SentLife } from '../store/life.ts'
export { type BucketAnnounced, type BucketUnits, bucketNews, type Level, levelAt, spanOf } from '../store/shapes/bucket.ts'
export type { Growth, News } from '../store/shapes/news.ts'
export { newestOf, type SlidingAnnounced, type SlidingWrite, slidingNews, visibleCells, windowUnits } from '../store/shapes/sliding.ts'
export { type WindowWrite, windowNews } from '../store/shapes/window.ts'
export { sumOf } from '../store/units.ts'
export type { Store } from '../throttler/coordinator.ts'
export { afterSilence } from '../time/after-silence.ts'
export type { CooldownGrowth } from '../time/cooldown-growth.ts'
export { endOf, type Ordinal, ordinalAt, spanEnd, startOf } from '../time/intervals.ts'
export { isLoadingCode, loadCode } from '../time/load-code.ts'
export { soon } from '../time/soon.ts'
export { backgroundStore } from './coordinator.ts'
export { checkSockets } from './no-sockets.ts'
