export { HELD, MOST_RETURNS } from './ask.ts'
export { grantLease, type LeaseNews, type LeaseRecord, type LeaseRow, newLeaseRecord, newLeaseRow, servesLease } from './grant.ts'
export {
  askFor,
  beginAnew,
  changeOpen,
  closeOpen,
  hearReply,
  hearReset,
  heldOf,
  isOver,
  type Lease,
  type LeaseWish,
  newLease,
  surrender,
  takeLease,
} from './lease.ts'
