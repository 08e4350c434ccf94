export { grantLease, type LeaseNews, type LeaseRecord, type LeaseRow, newLeaseRecord, servesLease } from './grant.ts'
export { askFor, hearReply, hearReset, heldOf, type Lease, type LeaseWish, newLease, surrender, takeLease } from './lease.ts'
