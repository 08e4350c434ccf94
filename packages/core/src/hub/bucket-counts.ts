import { BUCKET_GROUPS, BUCKET_PARTS, type Cell, FINE_PARTS, type StorePolicy, type SyncEntry } from '../store/contract.ts'
import { type BucketAnnounced, bucketNews } from '../store/shapes/bucket.ts'
import { growthOver, sumOf } from '../store/units.ts'
import { type Ordinal, ordinalAt } from '../time/intervals.ts'
import { type Account, NODE_BYTES } from './account.ts'
import type { Applied, Times } from './cell.ts'
import { Generations } from './generations.ts'

/** Units that count as having come together. */
interface Group {
  /** The first cell that they are of. */
  ordinal: Ordinal
  taken: number
  given: number
}

/** One key's bucket; see `BUCKET_PARTS` of the contract. */
interface KeyBucket extends BucketAnnounced {
  /** Units in it at `ordinal`, those of that cell included. Nothing of this cell and earlier ones is added any more. */
  base: { ordinal: Ordinal; level: number }
  /** Nodes know that so much was in it then: no less is, whatever was lost. Units of later cells come on top of either. */
  floor: { readonly ordinal: Ordinal; readonly level: number } | undefined
  /** Units after `base`, in ascending order of their cells. */
  groups: Group[]
  /** The counts of each process for its cells. */
  readonly nodes: Map<string, Map<Ordinal, { taken: number; given: number; rejected: number }>>
  /** All units that were ever heard of. */
  taken: number
  given: number
  rejected: number
  writtenIn: Ordinal
  /** Until then (a cell) the level stays that of `base`, as the nodes may bring what is older. */
  heldUntil: Ordinal
  /** Monotonic time until which it must be kept. */
  until: number
}

/** How long a policy's cells count, and how far apart those of a group are; in cells. */
interface Spans {
  readonly span: number
  readonly group: number
  /** The same where the bucket may have run out meanwhile. */
  readonly fine: number
}

function spansOf({ limit, drain = 0, cells }: StorePolicy): Spans {
  const span = drain > 0 ? Math.min(cells, Math.ceil(limit / drain)) : cells
  return { span, group: Math.max(1, Math.floor(span / BUCKET_PARTS)), fine: Math.max(1, Math.floor(span / FINE_PARTS)) }
}

/** The buckets of one policy. Those are kept apart whose level takes longer to run out than others are kept. */
export class BucketCounts {
  readonly #buckets: Generations<KeyBucket>
  readonly #indebted = new Map<string, KeyBucket>()

  constructor(monotonic: number) {
    this.#buckets = new Generations(monotonic)
  }

  /** @param account - whose memory it is; undefined is returned when that is used up */
  apply(nodeId: string, { policy, key, cells }: SyncEntry, times: Times, account?: Account): Applied | undefined {
    const found = this.#find(key)
    const running = ordinalAt(times.wall, policy.width)
    if (cells.every(isEmpty)) return answer(found, running, policy, false)
    if (account !== undefined && !this.#hasRoom(nodeId, key, cells, found, account)) return undefined
    const bucket = found ?? newBucket(running, spansOf(policy))
    foldDue(bucket, running, policy)
    const before = levelAt(bucket, running, policy)
    const taken = write(nodeId, bucket, cells, running, policy)
    raise(bucket, cells, running, policy)
    const excess = levelAt(bucket, running, policy) - policy.limit - (policy.maxDebt ?? Number.POSITIVE_INFINITY)
    if (excess > 0) forgive(bucket, excess)
    const after = levelAt(bucket, running, policy)
    this.#keep(key, bucket, after, policy, times)
    const news = bucketNews({ before, after, units: taken }, bucket, policy, times.wall, times.monotonic)
    return answer(bucket, running, policy, news.announce)
  }

  /** Keys that were announced as hot and are not yet half as full again. */
  *hot(running: Ordinal, policy: StorePolicy): Iterable<{ readonly key: string; readonly cells: readonly Cell[] }> {
    for (const keys of [this.#buckets, this.#indebted]) {
      for (const [key, bucket] of keys) {
        if (bucket.hot && levelAt(bucket, running, policy) >= policy.hot / 2) yield { key, cells: [cellOf(bucket, running, policy)] }
      }
    }
  }

  sweep(monotonic: number): void {
    for (const [key, { until }] of this.#indebted) if (until <= monotonic) this.#indebted.delete(key)
    this.#buckets.sweep(monotonic)
  }

  /** Forgets what was counted of a key. */
  reset(key: string): void {
    this.#buckets.delete(key)
    this.#indebted.delete(key)
  }

  get empty(): boolean {
    return this.size === 0
  }

  /** Keys held. */
  get size(): number {
    return this.#buckets.size + this.#indebted.size
  }

  #find(key: string): KeyBucket | undefined {
    return this.#buckets.get(key) ?? this.#indebted.get(key)
  }

  #keep(key: string, bucket: KeyBucket, level: number, { ttl, width, drain = 0 }: StorePolicy, { monotonic }: Times): void {
    this.#buckets.keepFor(ttl)
    const empty = drain > 0 ? (level / drain) * width : 0
    bucket.until = monotonic + empty + ttl
    if (empty <= ttl) {
      this.#indebted.delete(key)
      this.#buckets.touch(key, bucket)
    } else {
      this.#buckets.delete(key)
      this.#indebted.set(key, bucket)
    }
  }

  /** Takes the memory that an entry needs. */
  #hasRoom(nodeId: string, key: string, cells: readonly Cell[], bucket: KeyBucket | undefined, account: Account): boolean {
    const own = bucket?.nodes.get(nodeId)
    let more = 0
    for (const cell of cells) if (!isEmpty(cell) && !own?.has(cell.ordinal)) more += 2 * NODE_BYTES
    return this.#buckets.takeRoom(key, more, (bucket?.nodes.size ?? 0) * NODE_BYTES, account)
  }
}

function newBucket(running: Ordinal, { span }: Spans): KeyBucket {
  return {
    base: { ordinal: Number.NEGATIVE_INFINITY as Ordinal, level: 0 },
    floor: undefined,
    groups: [],
    nodes: new Map(),
    taken: 0,
    given: 0,
    rejected: 0,
    writtenIn: running,
    heldUntil: (running + span) as Ordinal,
    announcedAt: Number.NEGATIVE_INFINITY,
    hot: false,
    until: Number.NEGATIVE_INFINITY,
  }
}

/** Adds what is old to the level; after a silence, in which the nodes may have counted what they still bring, only what was old before it. */
function foldDue(bucket: KeyBucket, running: Ordinal, policy: StorePolicy): void {
  const { span } = spansOf(policy)
  const { writtenIn } = bucket
  if (running > writtenIn) bucket.writtenIn = running
  const silent = running - writtenIn > span / 2
  const held = running < bucket.heldUntil
  if (silent || !held) fold(bucket, ((silent ? writtenIn : running) - (held ? 2 : 1) * span) as Ordinal, policy)
  // Set by a limit with a longer span, or by a clock that was ahead, it may lie too far in the future.
  bucket.heldUntil = Math.min(silent ? Number.POSITIVE_INFINITY : bucket.heldUntil, running + span) as Ordinal
}

/** Adds what is of cells before this one to the level. */
function fold(bucket: KeyBucket, before: Ordinal, policy: StorePolicy): void {
  while (bucket.groups.length > 0 && (bucket.groups[0] as Group).ordinal < before) {
    const { ordinal, taken, given } = bucket.groups.shift() as Group
    bucket.base = { ordinal, level: levelBefore(bucket.base, bucket.floor, ordinal, policy) + taken - given }
    if (bucket.floor !== undefined && bucket.floor.ordinal < ordinal) bucket.floor = undefined
  }
  for (const [node, own] of bucket.nodes) {
    for (const ordinal of own.keys()) if (ordinal <= bucket.base.ordinal) own.delete(ordinal)
    if (own.size === 0) bucket.nodes.delete(node)
  }
}

/** It only asks. */
function isEmpty({ taken, given, rejected = 0, level = 0 }: Cell): boolean {
  return taken === 0 && given === 0 && rejected === 0 && level === 0
}

function drainedBy({ ordinal, level }: KeyBucket['base'], at: Ordinal, { drain = 0 }: StorePolicy): number {
  return level === 0 ? 0 : Math.max(0, level - (at - ordinal) * drain)
}

/** Units in the bucket when the cell `running` began, those of the cell included. */
function levelAt(bucket: KeyBucket, running: Ordinal, policy: StorePolicy): number {
  let at = bucket.base
  let { floor } = bucket
  for (const { ordinal, taken, given } of bucket.groups) {
    if (ordinal > running) break
    at = { ordinal, level: levelBefore(at, floor, ordinal, policy) + taken - given }
    if (floor !== undefined && floor.ordinal < ordinal) floor = undefined
  }
  return floor === undefined || floor.ordinal > running
    ? drainedBy(at, running, policy)
    : Math.max(drainedBy(at, running, policy), drainedBy(floor, running, policy))
}

/** The level at the beginning of a later cell after `at` drained, or after the floor drained if that lies between. */
function levelBefore(at: KeyBucket['base'], floor: KeyBucket['floor'], ordinal: Ordinal, policy: StorePolicy): number {
  const level = drainedBy(at, ordinal, policy)
  return floor === undefined || floor.ordinal >= ordinal ? level : Math.max(level, drainedBy(floor, ordinal, policy))
}

/** Takes a node's counts over; those that have grown count. Returns the units newly taken. */
function write(nodeId: string, bucket: KeyBucket, cells: readonly Cell[], running: Ordinal, policy: StorePolicy): number {
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

/** The group that a cell is of, made if need be. */
function groupAt(bucket: KeyBucket, ordinal: Ordinal, policy: StorePolicy): Group {
  const { groups } = bucket
  let place = groups.length
  while (place > 0 && (groups[place - 1] as Group).ordinal > ordinal) place--
  const found = groups[place - 1]
  if (found !== undefined) {
    const { group, fine } = spansOf(policy)
    const since = ordinal - found.ordinal
    const { floor } = bucket
    const apart = floor !== undefined && floor.ordinal >= found.ordinal && floor.ordinal < ordinal
    if (since < fine && !apart) return found
    // As the bucket has not run out since, it makes no difference when these units came.
    if (since < group && !apart && levelAt(bucket, found.ordinal, policy) >= since * (policy.drain ?? 0)) return found
  }
  const group = { ordinal, taken: 0, given: 0 }
  groups.splice(place, 0, group)
  return group
}

/** The two oldest groups become one: of a key that is seldom used both ran out long ago, and one that is always full loses nothing. */
function joinOldest(groups: Group[]): void {
  const [first, { taken, given }] = groups as [Group, Group]
  first.taken = sumOf(first.taken, taken)
  first.given += given
  groups.splice(1, 1)
}

/** Takes up what a node knows to be in the bucket though it was lost here. */
function raise(bucket: KeyBucket, cells: readonly Cell[], running: Ordinal, policy: StorePolicy): void {
  for (const { ordinal, level = 0 } of cells) {
    if (level === 0 || ordinal <= bucket.base.ordinal || ordinal > running) continue
    if (drainedBy({ ordinal, level }, running, policy) > levelAt(bucket, running, policy)) bucket.floor = { ordinal, level }
  }
}

/** Forgets the debt beyond what the policy remembers: of the newest units, as if they had been refunded. */
function forgive({ base, groups }: KeyBucket, excess: number): void {
  let left = excess
  for (let place = groups.length - 1; place >= 0 && left > 0; place--) {
    const group = groups[place] as Group
    const cut = Math.min(left, group.taken - group.given)
    group.given += cut
    left -= cut
  }
  if (left > 0) base.level = Math.max(0, base.level - left)
}

function cellOf(bucket: KeyBucket | undefined, running: Ordinal, policy: StorePolicy): Cell {
  if (bucket === undefined) return { ordinal: running, taken: 0, given: 0, level: 0 }
  const { taken, given, rejected } = bucket
  return { ordinal: running, taken, given, level: levelAt(bucket, running, policy), ...(rejected > 0 && { rejected }) }
}

function answer(bucket: KeyBucket | undefined, running: Ordinal, policy: StorePolicy, announce: boolean): Applied {
  return { cells: [cellOf(bucket, running, policy)], announce }
}
