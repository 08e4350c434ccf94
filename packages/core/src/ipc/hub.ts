/**
 * The hub behind a boundary, for a store whose processes send messages to one place: every message is checked like a message of `ipcStore`.
 */
export { STEP_IDS } from '../algorithms/all.ts'
export { Account } from '../hub/account.ts'
export { auditOf } from '../hub/audit.ts'
export { Hub } from '../hub/hub.ts'
export type { HubRow, RowsChanged } from '../hub/rows.ts'
export { type CheckedRequest, isNodeId, readRequest } from './check.ts'
export { decideFor } from './decide.ts'
export { type PackedDecide, type PackedRequest, pack, packDecide, unpackVerdicts } from './envelope.ts'
