import type { Ordinal } from '../../time/intervals.ts'
import { BUCKET_GROUPS, BUCKET_PARTS, type Cell, FINE_PARTS, type StorePolicy } from '../policy.ts'
import { growthOver, sumOf } from '../units.ts'
import { type BucketAnnounced, type BucketUnits, drainedAt, type Level, levelAt, spanOf } from './bucket.ts'
import type { Growth } from './news.ts'

/** Units that count as having come together. */
interface Group {
  /** The first cell that they are of. */
  ordinal: Ordinal
  taken: number
  given: number
}

/**
 * The store's record of one key's bucket: one level, and the groups of units that came after it (see `BUCKET_PARTS`). The model of every
 * store that keeps such a record. It is changed in place.
 */
export interface BucketRecord extends BucketUnits, BucketAnnounced {
  base: { ordinal: Ordinal; level: number }
  groups: Group[]
  /** At most one. */
  floors: readonly Level[]
  /** The counts of each process for its cells. */
  readonly nodes: Map<string, Map<Ordinal, { taken: number; given: number; rejected: number }>>
  /** All units that processes ever sent. */
  taken: number
  given: number
  rejected: number
  /** The running cell of the last write. */
  writtenIn: Ordinal
  /** Until this cell the level stays that of `base`, because processes may still send older units. */
  heldUntil: Ordinal
}

/** The record of a key without units. */
export function newBucketRecord(running: Ordinal, policy: StorePolicy): BucketRecord {
  return {
    base: { ordinal: Number.NEGATIVE_INFINITY as Ordinal, level: 0 },
    floors: [],
    groups: [],
    nodes: new Map(),
    taken: 0,
    given: 0,
    rejected: 0,
    writtenIn: running,
    heldUntil: (running + spanOf(policy)) as Ordinal,
    announcedAt: Number.NEGATIVE_INFINITY,
    hot: false,
  }
}

/**
 * Counts the units of a process. Counts are absolute, so units that it sent before add nothing.
 *
 * @returns the levels before and after it, when the running cell began
 */
export function countInBucket(bucket: BucketRecord, nodeId: string, cells: readonly Cell[], running: Ordinal, policy: StorePolicy): Growth {
  foldDue(bucket, running, policy)
  const before = levelAt(bucket, running, policy)
  const units = write(nodeId, bucket, cells, running, policy)
  raise(bucket, cells, running, policy)
  const excess = levelAt(bucket, running, policy) - policy.limit - (policy.maxDebt ?? Number.POSITIVE_INFINITY)
  if (excess > 0) forgive(bucket, excess)
  return { before, after: levelAt(bucket, running, policy), units }
}

/** The totals of a key, as processes receive them. */
export function bucketCell(bucket: BucketRecord | undefined, running: Ordinal, policy: StorePolicy): Cell {
  if (bucket === undefined) return { ordinal: running, taken: 0, given: 0, level: 0 }
  const { taken, given, rejected } = bucket
  return { ordinal: running, taken, given, level: levelAt(bucket, running, policy), ...(rejected > 0 && { rejected }) }
}

/**
 * Adds old groups to the level. After a silence it adds only groups that were old before it, because processes may still send later units.
 */
function foldDue(bucket: BucketRecord, running: Ordinal, policy: StorePolicy): void {
  const span = spanOf(policy)
  const { writtenIn } = bucket
  if (running > writtenIn) bucket.writtenIn = running
  const silent = running - writtenIn > span / 2
  const held = running < bucket.heldUntil
  if (silent || !held) fold(bucket, ((silent ? writtenIn : running) - (held ? 2 : 1) * span) as Ordinal, policy)
  // Set by a limit with a longer span, or by a clock that was ahead, it may lie too far in the future.
  bucket.heldUntil = Math.min(silent ? Number.POSITIVE_INFINITY : bucket.heldUntil, running + span) as Ordinal
}

/** Adds the groups of cells before this one to the level. */
function fold(bucket: BucketRecord, before: Ordinal, policy: StorePolicy): void {
  while (bucket.groups.length > 0 && (bucket.groups[0] as Group).ordinal < before) {
    const { base, floors } = bucket
    const { ordinal, taken, given } = bucket.groups.shift() as Group
    const passed = floors.filter((floor) => floor.ordinal < ordinal)
    bucket.base = { ordinal, level: levelAt({ base, groups: [], floors: passed }, ordinal, policy) + taken - given }
    if (passed.length > 0) bucket.floors = []
  }
  for (const [node, own] of bucket.nodes) {
    for (const ordinal of own.keys()) if (ordinal <= bucket.base.ordinal) own.delete(ordinal)
    if (own.size === 0) bucket.nodes.delete(node)
  }
}

/** Whether a cell contains no counts. Then it only requests the level. */
export function isEmpty({ taken, given, rejected = 0, level = 0 }: Cell): boolean {
  return taken === 0 && given === 0 && rejected === 0 && level === 0
}

/** Adds the growth of a process's counts to the groups, and returns the units newly taken. */
function write(nodeId: string, bucket: BucketRecord, cells: readonly Cell[], running: Ordinal, policy: StorePolicy): number {
  let units = 0
  let own = bucket.nodes.get(nodeId)
  for (const sent of cells) {
    if (sent.ordinal <= bucket.base.ordinal || isEmpty(sent)) continue
    if (own === undefined) bucket.nodes.set(nodeId, (own = new Map()))
    const known = own.get(sent.ordinal)
    const more = growthOver(known, sent)
    const rejected = Math.max(0, (sent.rejected ?? 0) - (known?.rejected ?? 0))
    if (more.taken === 0 && more.given === 0 && rejected === 0) continue
    own.set(sent.ordinal, {
      taken: Math.max(sent.taken, known?.taken ?? 0),
      given: Math.max(sent.given, known?.given ?? 0),
      rejected: (known?.rejected ?? 0) + rejected,
    })
    bucket.rejected = sumOf(bucket.rejected, rejected)
    if (more.taken === 0 && more.given === 0) continue
    const group = groupAt(bucket, Math.min(sent.ordinal, running) as Ordinal, policy)
    group.taken = sumOf(group.taken, more.taken)
    group.given = Math.min(group.taken, sumOf(group.given, more.given))
    bucket.taken = sumOf(bucket.taken, more.taken)
    bucket.given = Math.min(bucket.taken, sumOf(bucket.given, more.given))
    units += more.taken
  }
  while (bucket.groups.length > BUCKET_GROUPS) joinOldest(bucket.groups)
  return units
}

/** Finds the group of a cell, or makes it. */
function groupAt(bucket: BucketRecord, ordinal: Ordinal, policy: StorePolicy): Group {
  const { groups } = bucket
  let place = groups.length
  while (place > 0 && (groups[place - 1] as Group).ordinal > ordinal) place--
  const found = groups[place - 1]
  if (found !== undefined) {
    const since = ordinal - found.ordinal
    const apart = bucket.floors.some((floor) => floor.ordinal >= found.ordinal && floor.ordinal < ordinal)
    const isWithin = (parts: number): boolean => !apart && since < Math.max(1, Math.floor(spanOf(policy) / parts))
    if (isWithin(FINE_PARTS)) return found
    // As the bucket has not run out since, it makes no difference when these units came.
    if (isWithin(BUCKET_PARTS) && levelAt(bucket, found.ordinal, policy) >= since * (policy.drain ?? 0)) return found
  }
  const group = { ordinal, taken: 0, given: 0 }
  groups.splice(place, 0, group)
  return group
}

/** Joins the two oldest groups. For a key that is rarely used both drained long ago, and a key that is always full loses nothing. */
function joinOldest(groups: Group[]): void {
  const [first, { taken, given }] = groups as [Group, Group]
  first.taken = sumOf(first.taken, taken)
  first.given += given
  groups.splice(1, 1)
}

/** Raises the level to a level that a process knows, if the store has lost units. */
function raise(bucket: BucketRecord, cells: readonly Cell[], running: Ordinal, policy: StorePolicy): void {
  for (const { ordinal, level = 0 } of cells) {
    if (level === 0 || ordinal <= bucket.base.ordinal || ordinal > running) continue
    if (drainedAt({ ordinal, level }, running, policy) > levelAt(bucket, running, policy)) bucket.floors = [{ ordinal, level }]
  }
}

/** Forgets the debt above `maxDebt`, as if the newest units had been refunded. */
function forgive({ base, groups }: BucketRecord, excess: number): void {
  let left = excess
  for (let place = groups.length - 1; place >= 0 && left > 0; place--) {
    const group = groups[place] as Group
    const cut = Math.min(left, group.taken - group.given)
    group.given += cut
    left -= cut
  }
  if (left > 0) base.level = Math.max(0, base.level - left)
}
