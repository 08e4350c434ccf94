import { BLOCKED, baseOf, DUE, GATE, IN_FLIGHT, KNOWN, TAG, TOLD } from '../../keys/key-table.ts'
import { SlotMap } from '../../keys/slot-map.ts'
import { MOST_UNITS, sumOf } from '../../keys/units.ts'
import { ANNOUNCED, CLOSE, COUNTDOWN, GLOBAL, HELLO, LOCAL, PROOF, REFUND, RESEND, type SourceIndex, SPAN_END } from '../../report/stats.ts'
import { BUCKET_PARTS, type Cell, type StorePolicy, type SyncEntry, type SyncResult, type TotalAnnouncement } from '../../store/contract.ts'
import { type Ordinal, spanEnd, startOf } from '../../time/intervals.ts'
import type { Refusal } from '../meter.ts'
import type { Batch, Ticket } from '../shared/batch.ts'
import { threshold } from '../shared/estimate.ts'
import { GatedMeter, SETTLE } from '../shared/gated-meter.ts'
import type { Exchange, ScanOptions, SharedSite } from '../shared/site.ts'
import { BucketKey } from './key.ts'
import { drained, drainTime, ROUNDING } from './step.ts'

/** Of a key's record: units in its bucket as far as known, and when they were on the monotonic clock. KNOWN: own ones since the last look. */
const LEVEL = 3
const AT = 4
/** Cells of an interval: what one of them lets run out is what an exchange is off by. None is shorter than `SHORTEST_CELL` ms. */
const CELLS = 256
const SHORTEST_CELL = 5
const SCAN_STEP = 5_000
/** A node tells of this part of a bucket, divided by the nodes, even where there is room for much more. */
const LEAST_PART = 0.05
const DIVISOR = 2
/** What is held back is sent when it is nearly so old as a bucket takes to run out. */
const OLD = 0.9
/** Sums of fractions differ by less than this part. */
const SUMS = 1e-9
/** A store's cell may be so far ahead of this node's. */
const AHEAD = 4
/** Limits of keys of their own whose policies are kept. */
const MOST_LIMITS = 100

/**
 * A bucket that all nodes fill. Each knows a level that is never above that of what was really admitted, its own units included,
 * and refuses by it; so nobody is refused by an estimate. What is admitted too much since others were not heard of yet stays in
 * the bucket, and is paid back.
 *
 * What a node knows is the greater of two levels, each a lower bound: what it knew before with its own units since; and
 * what the store says plus what a bucket would hold that had got only those of its units that the store lacks. (Buckets are
 * superadditive: what two hold that run down apart, one holds at least that gets the units of both.)
 */
export class BackgroundBucket extends GatedMeter {
  override readonly surveyed: number = 5_000
  override readonly jitter: boolean = true
  readonly #keys = new SlotMap<BucketKey>()
  readonly #policies = new Map<number, StorePolicy>()
  readonly #maxDebt: number | undefined
  // Read on the request path; see `LocalBucket`.
  protected interval: number
  protected rate: number
  /** What a bucket holds; less than 0 while some key has a limit of its own. */
  protected capacity: number
  #markedLevel = 0
  #markedAt = 0

  constructor(site: SharedSite, exchange: Exchange, maxDebt?: number) {
    const { id, interval, limit } = site.policy
    const width = Math.max(SHORTEST_CELL, interval / CELLS)
    const cells = Math.ceil(interval / width)
    super(site, exchange, bucketPolicy({ id, width, cells, ttl: 2 * interval }, limit, site.most(limit), interval, maxDebt))
    this.#maxDebt = maxDebt
    this.interval = interval
    this.rate = limit
    this.capacity = site.limited ? -1 : site.most(limit)
  }

  override adopt(now: number): void {
    const { limit } = this.policy
    this.#policies.clear()
    this.storePolicy = this.#made(limit)
    this.rate = limit
    this.capacity = this.site.limited ? -1 : this.site.most(limit)
    this.invalidate(now, false)
  }

  override recheck(slot: number): void {
    this.capacity = this.site.limited ? -1 : this.site.most(this.rate)
    super.recheck(slot)
  }

  /** What the store is told of a policy for a key of this limit: its bucket runs out at another pace. */
  #policyFor(slot: number): StorePolicy {
    const limit = this.site.limitOf(slot)
    if (limit === this.policy.limit) return this.storePolicy
    let policy = this.#policies.get(limit)
    if (policy === undefined) {
      if (this.#policies.size >= MOST_LIMITS) this.#policies.clear()
      this.#policies.set(limit, (policy = this.#made(limit)))
    }
    return policy
  }

  #made(limit: number): StorePolicy {
    return bucketPolicy(this.storePolicy, limit, this.site.most(limit), this.interval, this.#maxDebt)
  }

  // The request path. Of a record, `fields[base]` counts the units since the last look, `fields[base + 1]` how many of them need none.

  override take(slot: number, cost: number, now: number = 0): boolean {
    const { fields } = this.table
    const base = slot * 5
    const counted = (fields[base] as number) + cost
    let level = (fields[base + 3] as number) - ((now - (fields[base + 4] as number)) * this.rate) / this.interval
    if (level < 0) level = 0
    level += cost
    if (!(counted < (fields[base + 1] as number) && level <= this.capacity && fields[base + 2] === this.tag)) return false
    fields[base] = counted
    fields[base + 3] = level
    fields[base + 4] = now
    this.admitted += cost
    return true
  }

  override fits(slot: number, cost: number, now: number = 0): boolean {
    const { fields } = this.table
    const base = slot * 5
    const level = (fields[base + 3] as number) - ((now - (fields[base + 4] as number)) * this.rate) / this.interval
    return (
      (fields[base] as number) + cost < (fields[base + 1] as number) &&
      Math.max(level, 0) + cost <= this.capacity &&
      fields[base + 2] === this.tag
    )
  }

  override admits(slot: number, cost: number, now: number, count = true): boolean {
    return this.fits(slot, cost, now) || this.reconsider(slot, cost, now, count)
  }

  /** Buckets open at any time, not only at the ends of cells. */
  override fullBy(): -1 {
    return -1
  }

  override add(slot: number, cost: number, now: number = 0): void {
    const { fields } = this.table
    const base = baseOf(slot)
    this.#setLevel(slot, this.#level(slot, now) + cost, now)
    fields[base + KNOWN] = sumOf(fields[base + KNOWN] as number, cost)
    this.admitted += cost
  }

  override mark(slot: number): number {
    const { fields } = this.table
    const base = baseOf(slot)
    this.#markedLevel = fields[base + LEVEL] as number
    this.#markedAt = fields[base + AT] as number
    return fields[base + KNOWN] as number
  }

  override untake(slot: number, mark: number, cost: number): void {
    const base = baseOf(slot)
    super.untake(slot, mark, cost)
    this.table.fields[base + LEVEL] = this.#markedLevel
    this.table.fields[base + AT] = this.#markedAt
  }

  /** Units in the bucket as far as known. */
  #level(slot: number, now: number): number {
    const { fields } = this.table
    const base = baseOf(slot)
    return drained(fields[base + LEVEL] as number, now - (fields[base + AT] as number), this.site.limitOf(slot), this.interval)
  }

  #setLevel(slot: number, level: number, now: number): void {
    const base = baseOf(slot)
    const most = this.#maxDebt === undefined ? MOST_UNITS : this.site.most(this.site.limitOf(slot)) + this.#maxDebt
    this.table.fields[base + LEVEL] = Math.min(most, level)
    this.table.fields[base + AT] = now
  }

  #at(slot: number): BucketKey {
    let key = this.#keys.get(slot)
    if (key === undefined) this.#keys.set(slot, (key = new BucketKey()))
    return key
  }

  /** How long cells count, and how far apart those are that are sent as one; in cells. */
  #spans(slot: number): { readonly span: number; readonly group: number } {
    const limit = this.site.limitOf(slot)
    const { width, cells } = this.storePolicy
    if (limit === 0 || limit === Number.POSITIVE_INFINITY) return { span: cells, group: 1 }
    const span = Math.max(1, Math.min(cells, Math.ceil(drainTime(this.site.most(limit), limit, this.interval) / width)))
    return { span, group: Math.max(1, Math.floor(span / BUCKET_PARTS)) }
  }

  /** Books what the request path counted into its cell. */
  #refresh(slot: number, now: number): BucketKey {
    const key = this.#at(slot)
    const base = baseOf(slot)
    const { fields } = this.table
    const counted = fields[base + KNOWN] as number
    const ordinal = this.ordinalOf(base)
    if (counted > 0) {
      fields[base + KNOWN] = 0
      key.cells.add(ordinal, counted, this.#spans(slot).group)
      key.spanTaken += counted
      if (key.guess !== undefined) this.#setGuess(key, sumOf(this.#guess(key, slot, now), counted / this.#share(key)), now)
    }
    if (ordinal > this.ordinal) key.cells.moveBack(this.ordinal)
    fields[base + TAG] = this.tag
    fields[base + GATE] = Number.NEGATIVE_INFINITY
    return key
  }

  #share({ share }: BucketKey): number {
    return share.value(this.exchange.nodes)
  }

  #guess({ guess = 0, guessAt }: BucketKey, slot: number, now: number): number {
    return drained(guess, now - guessAt, this.site.limitOf(slot), this.interval)
  }

  #setGuess(key: BucketKey, guess: number, now: number): void {
    key.guess = guess
    key.guessAt = now
  }

  protected override reconsider(slot: number, cost: number, now: number, count: boolean): boolean {
    const key = this.#refresh(slot, now)
    const limit = this.site.limitOf(slot)
    const most = this.site.most(limit)
    if (this.blockOf(slot, now) !== undefined || limit === 0) return false
    const level = this.#level(slot, now)
    const away = this.storeAway || key.away
    if (away) {
      if (count) key.awayAt = now
      if (!this.storeAway && count) this.wantExchange(slot, now, RESEND)
      if (this.policy.degraded === 'open') return true
      return level + cost <= most + most * ROUNDING && this.#admitsAlone(key, slot, cost, now)
    }
    if (now < key.closedUntil) return false
    const idle = ((this.table.flags[slot] as number) & (IN_FLIGHT | DUE)) === 0
    if (level + cost > most + most * ROUNDING) {
      if (count && idle && this.exchange.connected && level + 1 > most && key.cells.unsent() > 0) this.wantExchange(slot, now, PROOF)
      return false
    }
    if (key.guess !== undefined) {
      if (this.#guess(key, slot, now) <= level) key.guess = undefined
      else {
        // Others may not have told yet what they admitted meanwhile.
        if (count) this.wantExchange(slot, Math.max(now, this.exchange.recoveredAt + SETTLE), RESEND)
        return this.#admitsAlone(key, slot, cost, now)
      }
    }
    if (!count) return true
    this.table.fields[baseOf(slot) + GATE] = Number.POSITIVE_INFINITY
    if (this.exchange.connected && idle) this.#countDown(slot, key, level, cost, now)
    return true
  }

  #countDown(slot: number, key: BucketKey, level: number, cost: number, now: number): void {
    const unsent = key.cells.unsent()
    const due = this.#dueAt(slot, key, level, unsent)
    if (unsent + cost >= due || key.hello) this.wantExchange(slot, now, key.hello ? HELLO : COUNTDOWN)
    else this.table.fields[baseOf(slot) + GATE] = due - unsent
  }

  /** Units that the store lacks at which they are sent. */
  #dueAt(slot: number, key: BucketKey, level: number, unsent: number): number {
    const live = this.exchange.nodes
    const most = this.site.most(this.site.limitOf(slot))
    const nodes = Math.min(3 * live, Math.max(live, 1 / key.share.value(live)))
    const byRoom = threshold({ room: most - Math.max(0, level - unsent), inFlight: 0, nodes, extrapolated: 0, divisor: DIVISOR })
    return Math.max(byRoom, (LEAST_PART * most) / nodes)
  }

  /** Whether a request may pass that the store can't be asked about in time. */
  #admitsAlone(key: BucketKey, slot: number, cost: number, now: number): boolean {
    const { degraded, interval, spans } = this.policy
    const limit = this.site.limitOf(slot)
    if (degraded === 'closed') return false
    if (degraded === 'published') {
      if (now >= key.spanEnd) {
        key.spanTaken = 0
        key.spanEnd = this.time.monotonicAt(spanEnd(this.time.at(now), interval, spans))
      }
      return key.spanTaken + cost <= limit / spans / this.exchange.nodes
    }
    if (key.guess === undefined) this.#setGuess(key, this.#level(slot, now), now)
    const share = this.#share(key)
    // A node whose share is less than a unit admits one when the bucket has run out.
    return this.#guess(key, slot, now) + cost / share <= Math.max(this.site.most(limit), Math.min(cost, 1) / share)
  }

  override refuse(slot: number, cost: number, now: number): Refusal {
    const key = this.#at(slot)
    const limit = this.site.limitOf(slot)
    const most = this.site.most(limit)
    const level = this.#level(slot, now)
    const known = !this.storeAway && !key.away && key.guess === undefined && this.blockOf(slot, now) === undefined
    if (known && now >= key.closedUntil && level + 1 > most + most * ROUNDING && limit > 0) {
      this.#close(key, slot, level, now)
      if (this.policy.cooldown > 0 && now - key.awayAt >= drainTime(most, limit, this.interval)) {
        this.blocks.startCooldown(slot, now, key.closedUntil)
      }
    }
    return this.explain(slot, cost, now)
  }

  /** Refused until a tenth of the bucket is free: else each request at the limit would have to be told to all. */
  #close(key: BucketKey, slot: number, level: number, now: number): void {
    const limit = this.site.limitOf(slot)
    key.closedUntil = now + drainTime(level - (this.site.most(limit) - this.#freeAt(limit)), limit, this.interval)
  }

  #freeAt(limit: number): number {
    const most = this.site.most(limit)
    return Math.max(1, Math.min(most / 2, Math.max(0.1 * most, limit / 20)))
  }

  override explain(slot: number, cost: number, now: number): Refusal {
    const key = this.#at(slot)
    const limit = this.site.limitOf(slot)
    const most = this.site.most(limit)
    const units = Math.min(cost, most)
    const block = this.blockOf(slot, now)
    if (block?.manual === true) return { reason: 'blocked', retryAfter: block.until - now }
    const byLevel = drainTime(this.#level(slot, now) + units - most - (most * ROUNDING) / 2, limit, this.interval)
    if (this.storeAway || key.away || key.guess !== undefined)
      return { reason: 'degraded', retryAfter: Math.max(byLevel, this.#opensAlone(key, slot, units, now)) }
    const retryAfter = Math.max(byLevel, key.closedUntil - now)
    return block === undefined
      ? { reason: 'limit', retryAfter }
      : { reason: 'cooldown', retryAfter: Math.max(block.until - now, retryAfter) }
  }

  #opensAlone(key: BucketKey, slot: number, cost: number, now: number): number {
    const { degraded } = this.policy
    if (degraded === 'published') return Math.max(0, key.spanEnd - now)
    if (degraded === 'closed') return Math.max(0, this.rollAt - now)
    const limit = this.site.limitOf(slot)
    const share = this.#share(key)
    const most = Math.max(this.site.most(limit), Math.min(cost, 1) / share)
    return drainTime(this.#guess(key, slot, now) + Math.min(most, cost / share) - most, limit, this.interval)
  }

  override remaining(slot: number, now: number): number {
    const key = this.#keys.get(slot)
    if (key !== undefined && now < key.closedUntil) return 0
    return Math.max(0, this.site.most(this.site.limitOf(slot)) - this.#level(slot, now))
  }

  override resetAfter(slot: number, now: number): number {
    return drainTime(this.#level(slot, now), this.site.limitOf(slot), this.interval)
  }

  protected override sentAt(slot: number): number {
    return this.#at(slot).sentAt
  }

  override refund(name: string, takenIn: Ordinal, units: number, now: number): void {
    const slot = this.table.find(name)
    if (slot < 0) return
    const key = this.#refresh(slot, now)
    const back = key.cells.giveBack(Math.min(takenIn, this.ordinal) as Ordinal, units)
    if (!(back > 0)) return
    const limit = this.site.limitOf(slot)
    const wasFull = now < key.closedUntil || this.#level(slot, now) + 1 > this.site.most(limit)
    this.#setLevel(slot, Math.max(0, this.#level(slot, now) - back), now)
    this.#reopen(key, slot, now)
    if (wasFull && this.exchange.connected && !this.exchange.degraded) this.wantExchange(slot, now, REFUND)
  }

  /** The level has fallen otherwise than by time: the key opens sooner. */
  #reopen(key: BucketKey, slot: number, now: number): void {
    if (now >= key.closedUntil) return
    const until = key.closedUntil
    this.#close(key, slot, this.#level(slot, now), now)
    key.closedUntil = Math.min(until, key.closedUntil)
  }

  protected override sendDue(slot: number, now: number, batch: Batch): void {
    this.#send(slot, this.#refresh(slot, now), now, batch)
  }

  #send(slot: number, key: BucketKey, now: number, batch: Batch): void {
    const cells = key.cells.toSend(key.resend)
    key.resent = key.resend
    key.resend = false
    if (cells.length === 0) {
      if (key.guess === undefined) return
      // There is nothing to send, but something to learn: what the others admitted during an outage.
      cells.push({ ordinal: this.ordinal, taken: 0, given: 0 })
    }
    key.sentAt = now
    key.announcedInFlight = false
    key.hello = false
    this.table.flags[slot] = (this.table.flags[slot] as number) | IN_FLIGHT
    batch.add(this, slot, { ...this.entryOf(this.site.idOf(slot), cells), policy: this.#policyFor(slot) })
  }

  override settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    if (typeof ticket !== 'number') return
    const slot = ticket
    this.table.flags[slot] = (this.table.flags[slot] as number) & ~(IN_FLIGHT | TOLD)
    if (this.wasReset(entry, result, now)) {
      this.recheck(slot)
      if (result.blocked > 0) this.blockRemotely(slot, result.blocked, now, result.manual === true, now - sent)
      return
    }
    const key = this.#refresh(slot, now)
    if (key.away) {
      key.away = false
      key.awayAt = now
    }
    if (key.sentAt >= this.exchange.recoveredAt + SETTLE) key.guess = undefined
    const own = key.cells.acknowledge(entry.cells)
    const [cell] = result.cells
    if (cell !== undefined) {
      const all = Math.max(own, cell.taken - key.heard)
      key.share.add(own, all, this.site.most(this.site.limitOf(slot)))
      if (!key.resent && this.#isLost(key, cell)) {
        key.resend = true
        this.wantExchange(slot, now, RESEND)
      }
      this.#learn(slot, key, cell, now, { announced: false, exact: !key.announcedInFlight })
    }
    key.syncedAt = now
    if (result.blocked > 0) this.blockRemotely(slot, result.blocked, now, result.manual === true, now - sent)
    this.#lookAtNews(slot, key, now)
  }

  /** Whether all nodes together have less than the store has acknowledged of this one. */
  #isLost(key: BucketKey, { taken }: Cell): boolean {
    return taken < key.cells.acknowledged() * (1 - SUMS)
  }

  /**
   * @param announced it may hold units that are under way from here
   * @param exact the store knows all that this node has of the others: where something was refunded, the level falls
   */
  #learn(
    slot: number,
    key: BucketKey,
    { ordinal, taken, given, level = 0 }: Cell,
    now: number,
    { announced, exact }: { readonly announced: boolean; readonly exact: boolean },
  ): void {
    key.heard = taken
    if (ordinal > this.ordinal + AHEAD) return
    const limit = this.site.limitOf(slot)
    const { width } = this.storePolicy
    const then = this.time.monotonicAt(startOf(ordinal, width))
    const unsent = key.cells.levelUnsent(this.time.at(now), width, limit, this.interval, announced)
    const learned = sumOf(drained(level, now - then, limit, this.interval), unsent)
    const known = this.#level(slot, now)
    if (learned > known || (exact && given > key.givenHeard)) this.#setLevel(slot, learned, now)
    if (learned < known) this.#reopen(key, slot, now)
    key.givenHeard = Math.max(key.givenHeard, given)
  }

  /** Something new is known: units that were too few to be sent may now be worth an exchange. */
  #lookAtNews(slot: number, key: BucketKey, now: number): void {
    const unsent = key.cells.unsent()
    if (unsent === 0 || this.exchange.degraded) return
    const level = this.#level(slot, now)
    if (level + 1 > this.site.most(this.site.limitOf(slot))) this.wantExchange(slot, now, PROOF)
    else if (now >= key.closedUntil && unsent >= 1 && unsent >= this.#dueAt(slot, key, level, unsent))
      this.wantExchange(slot, now, COUNTDOWN)
  }

  override fail(ticket: Ticket, _entry: SyncEntry, now: number, alone = false): void {
    if (typeof ticket !== 'number') return
    this.table.flags[ticket] = (this.table.flags[ticket] as number) & ~IN_FLIGHT
    if (alone) {
      const key = this.#at(ticket)
      key.away = true
      key.awayAt = now
      this.retryAlone(ticket, now)
    }
    this.recheck(ticket)
  }

  override overdue(ticket: Ticket): void {
    if (typeof ticket !== 'number' || this.policy.degraded !== 'share') return
    this.#at(ticket).away = true
    this.recheck(ticket)
  }

  override announced(announcement: TotalAnnouncement, now: number): void {
    if (this.isOfBefore(announcement, now)) return
    const [cell] = announcement.cells
    const slot = this.site.locateId(announcement.key)
    if (slot < 0 || cell === undefined) return
    const key = this.#refresh(slot, now)
    if (key.cells.own() === 0 && key.syncedAt < now - this.policy.interval) key.hello = true
    key.announcedInFlight = ((this.table.flags[slot] as number) & IN_FLIGHT) !== 0
    if (this.#isLost(key, cell)) {
      key.resend = true
      this.wantExchange(slot, now, RESEND)
    }
    // When many nodes join an attack at once, only announcements tell that this node's share has shrunk.
    const grown = cell.taken - key.heard
    if (grown > 0) {
      if (key.syncedAt > Number.NEGATIVE_INFINITY) key.share.add(0, grown, this.site.most(this.site.limitOf(slot)))
      this.table.flags[slot] = (this.table.flags[slot] as number) | TOLD
    }
    this.#learn(slot, key, cell, now, { announced: true, exact: false })
    key.syncedAt = now
    if (!key.away) this.#lookAtNews(slot, key, now)
  }

  protected override lost(slot: number): void {
    const key = this.#at(slot)
    key.cells.forgetSent()
    key.heard = 0
    this.recheck(slot)
  }

  override scan(from: number, now: number, batch: Batch, { all, resend }: ScanOptions): number {
    const { table } = this
    const end = Math.min(table.end, from + SCAN_STEP)
    const connected = this.exchange.connected && !this.exchange.degraded
    for (let slot = from; slot < end; slot++) {
      if (batch.full) return slot
      if (table.keys[slot] === undefined) continue
      const flags = table.flags[slot] as number
      if ((flags & BLOCKED) !== 0) this.blockOf(slot, now)
      if ((flags & IN_FLIGHT) !== 0) continue
      const key = this.#refresh(slot, now)
      if (resend) this.lost(slot)
      const unsent = key.cells.unsent()
      if (connected && (key.cells.givenUnsent() || (unsent > 0 && (all || !this.#quiet(slot, key, unsent, now, resend))))) {
        this.stats.countExchange(resend ? RESEND : all ? CLOSE : SPAN_END)
        this.#send(slot, key, now, batch)
        continue
      }
      const keep = !connected || key.away || key.guess !== undefined || now < this.exchange.recoveredAt + this.policy.interval
      key.cells.trim((this.ordinal - this.#spans(slot).span) as Ordinal, keep && this.exchange.connected)
      if ((flags & (BLOCKED | DUE)) === 0 && this.mayForget(slot, now)) this.site.forget(slot)
    }
    return end >= table.end ? -1 : end
  }

  /**
   * What will have run out before it could matter to anybody, or can still be sent when the next span ends.
   *
   * @param soon it can't
   */
  #quiet(slot: number, key: BucketKey, unsent: number, now: number, soon = false): boolean {
    if (this.keepsAll) return false
    const { width } = this.storePolicy
    const { interval, spans } = this.policy
    const since = key.cells.unsentSince() ?? this.ordinal
    if (!soon && (this.ordinal - since) * width + interval / spans < OLD * this.#spans(slot).span * width) return true
    const most = this.site.most(this.site.limitOf(slot))
    return unsent * this.exchange.nodes < LEAST_PART * most && this.#level(slot, now) < most / 4
  }

  protected override knownBy(slot: number, cost: number): SourceIndex {
    const key = this.#keys.get(slot)
    const own = (key?.cells.own() ?? 0) + (this.table.fields[baseOf(slot)] as number)
    if (key === undefined || key.heard <= key.cells.acknowledged() || own + cost > this.site.most(this.site.limitOf(slot))) return LOCAL
    return ((this.table.flags[slot] as number) & TOLD) === 0 ? GLOBAL : ANNOUNCED
  }

  override usedOf(slot: number, now: number): number {
    return this.#level(slot, now)
  }

  override ownOf(slot: number): number {
    return (this.#keys.get(slot)?.cells.own() ?? 0) + (this.table.fields[baseOf(slot)] as number)
  }

  override wasExchanged(slot: number): boolean {
    return (this.#keys.get(slot)?.syncedAt ?? Number.NEGATIVE_INFINITY) > Number.NEGATIVE_INFINITY
  }

  override unsyncedOf(slot: number): number {
    return this.exchange.connected ? (this.#keys.get(slot)?.cells.unsent() ?? 0) + (this.table.fields[baseOf(slot)] as number) : 0
  }

  override unsyncedSince(slot: number, now: number): number {
    const key = this.#keys.get(slot)
    if (key === undefined || (!this.exchange.degraded && this.#quiet(slot, key, this.unsyncedOf(slot), now))) return now
    return Math.min(now, Math.max(now - this.policy.interval, key.syncedAt))
  }

  override forgotten(slot: number): void {
    this.#keys.delete(slot)
  }

  protected override cleared(_key: string, slot: number): void {
    if (slot >= 0) this.#keys.delete(slot)
  }

  override usedIn([cell]: readonly Cell[], now: number): number {
    if (cell?.level === undefined) return 0
    const then = this.time.monotonicAt(startOf(cell.ordinal, this.storePolicy.width))
    return drained(cell.level, now - then, this.policy.limit, this.interval)
  }

  protected override mayForget(slot: number, now: number = this.rollAt): boolean {
    const key = this.#keys.get(slot)
    if (this.#level(slot, now) > 0 || (this.table.fields[baseOf(slot)] as number) > 0) return false
    return key === undefined || (key.cells.oldest === undefined && !(now < key.closedUntil))
  }
}

/** What the store is told of a bucket of this limit. */
function bucketPolicy(
  { id, width, cells, ttl }: Pick<StorePolicy, 'id' | 'width' | 'cells' | 'ttl'>,
  limit: number,
  most: number,
  interval: number,
  maxDebt: number | undefined,
): StorePolicy {
  return Object.freeze({
    id,
    width,
    cells,
    // A store computes with them: no infinity.
    limit: Math.min(MOST_UNITS, most),
    hot: Math.min(MOST_UNITS, most) / 2,
    ttl,
    drain: Math.min(MOST_UNITS, (limit * width) / interval),
    ...(maxDebt !== undefined && { maxDebt }),
  })
}
