import type { Batch, Ticket } from './batch.ts'
import type { CounterHost, Refusal, ScanOptions } from './counter.ts'
import { ANNOUNCED, CLOSE, COUNTDOWN, GLOBAL, HELLO, LOCAL, PROOF, REFUND, RESEND, type SourceIndex, SPAN_END } from './counter-stats.ts'
import { BLOCKED, baseOf, DUE, GATE, IN_FLIGHT, KNOWN, OTHERS, TAG, TOLD } from './counter-table.ts'
import { Share, threshold } from './estimate.ts'
import { ExchangedCounter, SETTLE } from './exchanged-counter.ts'
import type { Policy } from './policy.ts'
import { type Bucket, SlidingCells } from './sliding-cells.ts'
import { SlotMap } from './slot-map.ts'
import type { Cell, StorePolicy, SyncEntry, SyncResult, TotalAnnouncement } from './store.ts'
import { endOf, type Ordinal, spanEnd, startOf } from './time.ts'

/** A key's side state. */
class SlidingKey {
  readonly cells = new SlidingCells()
  readonly share = new Share()
  /** What of the oldest bucket was released early when the key was last looked at. */
  early = 0
  /** Reached its limit: refused until enough of it is free again. */
  closed = false
  /** The bucket up to which it was looked whether enough was free. */
  lookedAt = 0 as Ordinal
  sentAt = Number.NEGATIVE_INFINITY
  syncedAt = Number.NEGATIVE_INFINITY
  /** Whether an exchange has returned yet. */
  synced = false
  /** When the key was last found idle: the others' rate is measured from then on. */
  idleAt = Number.NEGATIVE_INFINITY
  /** Others' units per millisecond: units and time of the exchanges, each counting half of the next one. */
  rate = 0
  paceUnits = 0
  paceTime = 0
  /** Own units taken since the start, and at the last exchange. */
  ownTaken = 0
  ownThen = 0
  hello = false
  announcedInFlight = false
  /** The part of the store that holds this key is away, though others answer: decided as degraded until it is back. */
  away = false
  /** The last bucket in which that was so: its excess starts no cooldown. */
  awayIn = -1
  /** `degraded: 'share'`: own units that may have been taken since the start, and whether that still holds. */
  cap = 0
  capped = false
  spanTaken = 0
  spanEnd = 0
}

const SCAN_STEP = 5_000
/** c of the countdown, for all but small limits. */
const DIVISOR = 1.5
/** The oldest bucket counts in full but for this part of the limit, which is released as the bucket leaves. */
const EARLY_RELEASE = 0.02
/** The clock's uncertainty is allowed for up to this part of a bucket. */
const MOST_MARGIN = 0.1

/**
 * `window: 'sliding'`: no more than the limit in any stretch of `interval` length. The interval is cut into `buckets` of
 * the store's clock; with b the running one, w their width and c_j what was admitted in bucket j,
 *
 *     W(t) = c_{b−B} + … + c_b − min(0.02·MAX, c_{b−B}·(t/w − b))
 *
 * and a request is refused when W as far as known, own units included, leaves no room for it: a proof, since what is
 * known is never more than the truth. A key that reached the limit is closed until `reopen`·MAX units are free.
 *
 * Of the record KNOWN is the buckets' sum when it was last looked at plus what was counted since, OTHERS is KNOWN without the
 * latter; W is KNOWN less what is released early. Apart, since a fraction would spoil the difference.
 */
export class SlidingProof extends ExchangedCounter {
  readonly #keys = new SlotMap<SlidingKey>()

  constructor(policy: Policy, host: CounterHost, maxKeys: number, overflow: 'shared' | 'allow' | 'block') {
    const width = policy.interval / policy.buckets
    const wire: StorePolicy = Object.freeze({
      id: policy.id,
      width,
      cells: policy.buckets + 1,
      limit: policy.limit,
      hot: policy.limit / 4,
      ttl: 2 * policy.interval,
    })
    super(policy, wire, host, maxKeys, overflow)
  }

  #keyAt(slot: number): SlidingKey {
    let key = this.#keys.get(slot)
    if (key === undefined) this.#keys.set(slot, (key = new SlidingKey()))
    return key
  }

  /** The oldest bucket of the window that ends now. */
  #oldest(): Ordinal {
    return (this.ordinal - this.policy.buckets) as Ordinal
  }

  /** Books what the fast path counted into its bucket and computes W. */
  #refresh(slot: number, now: number): SlidingKey {
    const base = baseOf(slot)
    const fields = this.table.fields
    const key = this.#keyAt(slot)
    this.#absorb(base, key)
    if (key.closed) this.#reopen(key, now)
    key.cells.dropBefore(this.#oldest())
    if (key.cells.empty) {
      // So that the first exchange of an attack tells its pace already.
      key.idleAt = now
      key.rate = key.paceUnits = key.paceTime = 0
    }
    const known = this.#total(key.cells, now)
    key.early = this.#early(key.cells, now)
    fields[base + KNOWN] = known
    fields[base + OTHERS] = known
    fields[base + TAG] = this.tag
    return key
  }

  #absorb(base: number, key: SlidingKey): void {
    const fields = this.table.fields
    const counted = (fields[base + KNOWN] as number) - (fields[base + OTHERS] as number)
    if (counted !== 0) {
      fields[base + OTHERS] = fields[base + KNOWN] as number
      key.cells.at(this.ordinalOf(base)).taken += counted
      key.ownTaken += counted
    }
    if (this.ordinalOf(base) > this.ordinal) this.#moveBack(base, key)
  }

  /** Counted by a clock that was ahead, see `adoptTime`: it counts now. */
  #moveBack(base: number, key: SlidingKey): void {
    key.cells.moveBack(this.ordinal)
    key.lookedAt = Math.min(key.lookedAt, this.ordinal) as Ordinal
    key.awayIn = Math.min(key.awayIn, this.ordinal)
    this.table.fields[base + GATE] = Number.NEGATIVE_INFINITY
    this.table.fields[base + TAG] = this.tag
  }

  /**
   * W as far as known. The clock may be slow: then a bucket has left already that seems to count. So W is taken as late as
   * the clock's uncertainty allows, or what is no proof would close the key for a long time.
   */
  #total(cells: SlidingCells, now: number): number {
    return cells.total((this.#oldest() + Math.floor(this.#into(now))) as Ordinal)
  }

  /** What of the oldest bucket is released already. */
  #early(cells: SlidingCells, now: number): number {
    const into = this.#into(now)
    const leaving = cells.find((this.#oldest() + Math.floor(into)) as Ordinal)
    if (leaving === undefined) return 0
    const units = leaving.others + leaving.taken - leaving.given
    return Math.max(0, Math.min(EARLY_RELEASE * this.policy.limit, units * (into - Math.floor(into))))
  }

  /** W when the key was last looked at, plus what was counted since. */
  #known(slot: number, key: SlidingKey): number {
    return (this.table.fields[baseOf(slot) + KNOWN] as number) - key.early
  }

  /**
   * Opens a closed key if enough of its limit was free at some time since it was looked at: a node that had no request then
   * must not stay closed while others, which had, fill the window up again.
   */
  #reopen(key: SlidingKey, now: number): void {
    const most = this.#reopensBelow()
    for (let bucket = key.lookedAt + 1; bucket <= this.ordinal; bucket++) {
      const oldest = (bucket - this.policy.buckets) as Ordinal
      const leaving = key.cells.find(oldest)
      const units = leaving === undefined ? 0 : leaving.others + leaving.taken - leaving.given
      const over = bucket < this.ordinal ? 1 : this.#into(now)
      const early = Math.min(EARLY_RELEASE * this.policy.limit, units * Math.min(1, over))
      if (key.cells.total(oldest, bucket as Ordinal) - early <= most) {
        key.closed = false
        return
      }
    }
    // What leaves in the running bucket goes on being released; but what closed the key in it still counts.
    key.lookedAt = Math.max(key.lookedAt, this.ordinal - 1) as Ordinal
  }

  #close(key: SlidingKey): void {
    key.closed = true
    key.lookedAt = this.ordinal
  }

  #reopensBelow(): number {
    return this.policy.limit - Math.max(1, this.policy.reopen * this.policy.limit)
  }

  override reconsider(slot: number, cost: number, now: number, count: boolean): boolean {
    const key = this.#refresh(slot, now)
    const base = baseOf(slot)
    const fields = this.table.fields
    const known = this.#known(slot, key)
    const { limit } = this.policy
    fields[base + GATE] = Number.NEGATIVE_INFINITY
    if (this.blockOf(slot, now) !== undefined) return false
    if (this.storeAway || key.away) {
      const most = this.#mostWhileDegraded(key, known, now)
      fields[base + GATE] = most + key.early
      // The next try was dropped if the whole store went away meanwhile.
      if (!this.storeAway && count) this.wantExchange(slot, now, RESEND)
      return known + cost <= most
    }
    if (key.closed) {
      if (known > this.#reopensBelow()) return false
      key.closed = false
    }
    const idle = ((this.table.flags[slot] as number) & (IN_FLIGHT | DUE)) === 0
    if (known + cost > limit) {
      // A proof is worth telling: others may not know yet.
      if (count && this.host.connected && idle && key.cells.unsent() > 0) this.wantExchange(slot, now, PROOF)
      return false
    }
    // What the others admitted while the store was away has left the window.
    if (key.capped && now > this.host.recoveredAt + this.policy.interval) key.capped = false
    if (key.capped) {
      // As for a fixed window: see `admitsCapped` there.
      if (count) this.wantExchange(slot, Math.max(now, this.host.recoveredAt + SETTLE), RESEND)
      return key.ownTaken + cost <= key.cap
    }
    if (!count) return true
    fields[base + GATE] = limit + key.early
    if (this.host.connected && idle) this.#countDown(slot, base, key, cost, now)
    return true
  }

  #countDown(slot: number, base: number, key: SlidingKey, cost: number, now: number): void {
    const unsent = key.cells.unsent()
    const due = this.#dueAt(key, this.#known(slot, key), now)
    if (unsent + cost >= due || key.hello) {
      this.wantExchange(slot, now, key.hello ? HELLO : COUNTDOWN)
      return
    }
    const next = key.rate > 0 ? unsent + Math.max(1, (due - unsent) / 2) : due
    this.table.fields[base + GATE] = Math.min(this.policy.limit + key.early, (this.table.fields[base + KNOWN] as number) + next - unsent)
  }

  #dueAt(key: SlidingKey, known: number, now: number): number {
    const live = this.host.nodes
    const flight = key.cells.flight()
    return threshold({
      room: this.policy.limit - (known - key.cells.unsent()),
      inFlight: flight,
      nodes: Math.min(3 * live, Math.max(live, 1 / key.share.value(live))),
      extrapolated: key.rate * Math.max(0, now - Math.max(key.syncedAt, now - this.policy.interval)),
      divisor: this.policy.limit < 20 * live ? 3 : DIVISOR,
    })
  }

  #mostWhileDegraded(key: SlidingKey, known: number, now: number): number {
    const { limit, spans, interval, degraded } = this.policy
    const live = this.host.nodes
    if (degraded === 'open') return Number.POSITIVE_INFINITY
    if (degraded === 'closed') return Number.NEGATIVE_INFINITY
    const unsent = key.cells.unsent()
    if (degraded === 'published') {
      if (now >= key.spanEnd) {
        key.spanTaken = key.ownTaken
        key.spanEnd = this.time.monotonicAt(spanEnd(this.time.at(now), interval, spans))
      }
      return known + limit / spans / live - (key.ownTaken - key.spanTaken)
    }
    const room = Math.max(0, limit - (known - unsent))
    const most = Math.max(room * key.share.value(live), room > 0 && key.cells.own() === 0 ? 1 : 0)
    key.cap = key.ownTaken - unsent + most
    key.capped = true
    return known - unsent + most
  }

  override refuse(slot: number, cost: number, now: number): Refusal {
    const key = this.#keyAt(slot)
    const known = this.#known(slot, key)
    const { cooldown, limit } = this.policy
    if (!this.storeAway && !key.away && (cost <= 1 || known + 1 > limit) && this.blockOf(slot, now) === undefined) {
      const first = !key.closed
      if (known + 1 > limit) this.#close(key)
      if (first && key.closed && cooldown > 0 && this.time.at(now) - this.policy.interval >= this.#amnestyEnd(key))
        this.startCooldown(slot, now, now)
    }
    return this.explain(slot, cost, now)
  }

  /** Units that were admitted while the store was away start no cooldown as long as they are in the window. */
  #amnestyEnd({ awayIn }: SlidingKey): number {
    const last = Math.max(this.amnesty, awayIn)
    return last < 0 ? Number.NEGATIVE_INFINITY : endOf(last as Ordinal, this.wire.width)
  }

  override blockRemotely(slot: number, remaining: number, now: number, roundTrip?: number, source?: SourceIndex): void {
    super.blockRemotely(slot, remaining, now, roundTrip, source)
    const key = this.#keys.get(slot)
    if (remaining > 0 && key !== undefined && this.usedOf(slot, now) + 1 > this.policy.limit) this.#closeIfBlocked(slot, key)
  }

  override explain(slot: number, cost: number, now: number): Refusal {
    const block = this.blockOf(slot, now)
    if (block !== undefined) {
      const retryAfter = Math.max(block.until - now, block.manual ? 0 : this.#opensIn(slot, cost, now))
      return { reason: block.manual ? 'blocked' : 'cooldown', retryAfter }
    }
    const key = this.#keyAt(slot)
    if (this.storeAway || key.away) return { reason: 'degraded', retryAfter: this.#opensAlone(key, cost, now) }
    return { reason: 'limit', retryAfter: this.#opensIn(slot, cost, now) }
  }

  /** Milliseconds until this node lets a request of `cost` in by itself, see `#mostWhileDegraded`. */
  #opensAlone(key: SlidingKey, cost: number, now: number): number {
    const { limit, degraded, interval } = this.policy
    const { width, cells } = this.wire
    // Own units leave when the bucket does by this node's time: no allowance for the store's.
    const at = this.time.at(now)
    if (degraded === 'published') return Math.max(0, key.spanEnd - now)
    if (degraded === 'closed') return endOf(this.ordinal, width) - at
    const share = key.share.value(this.host.nodes)
    for (let ahead = 0; ahead <= cells; ahead++) {
      const oldest = (this.#oldest() + ahead) as Ordinal
      const { sum, own, unsent } = key.cells.since(oldest)
      const room = Math.max(0, limit - (sum - unsent))
      const most = Math.max(room * share, room > 0 && own === 0 ? 1 : 0)
      if (unsent + cost <= most) return Math.max(0, startOf((this.ordinal + ahead) as Ordinal, width) - at)
    }
    return interval
  }

  /** Milliseconds until enough of the window has left, as far as known. */
  #opensIn(slot: number, cost: number, now: number): number {
    const key = this.#keyAt(slot)
    const { limit } = this.policy
    const { width, cells } = this.wire
    const at = this.time.at(now) + this.#margin(now)
    for (let ahead = 0; ahead <= cells; ahead++) {
      const oldest = (this.#oldest() + ahead) as Ordinal
      const tooMuch = key.cells.total(oldest) - (limit - Math.min(cost, limit))
      // See `#reopen`: what the running bucket holds does not keep a key closed.
      const end = Math.max(this.ordinal + ahead, key.lookedAt + 1)
      const tooFull = key.closed ? key.cells.total(oldest, end) - this.#reopensBelow() : 0
      const excess = Math.max(tooMuch, tooFull, 0)
      const leaving = key.cells.find(oldest)
      const units = leaving === undefined ? 0 : leaving.others + leaving.taken - leaving.given
      if (excess > Math.min(EARLY_RELEASE * limit, units)) continue
      // Part of the oldest bucket is released while it leaves.
      const opens = startOf((this.ordinal + ahead) as Ordinal, width) + (excess > 0 ? (excess / units) * width : 0)
      return Math.max(0, opens - at)
    }
    return this.policy.interval
  }

  /** How much of the running bucket may be over, in buckets. */
  #into(now: number): number {
    const { width } = this.wire
    return Math.max(0, (this.time.at(now) + this.#margin(now) - startOf(this.ordinal, width)) / width)
  }

  #margin(now: number): number {
    return Math.min(this.time.uncertainty(now), this.wire.width * MOST_MARGIN)
  }

  override remaining(slot: number, now: number): number {
    const key = this.#keys.get(slot)
    if (key === undefined) return super.remaining(slot, now)
    return key.closed ? 0 : Math.max(0, this.policy.limit - this.#known(slot, key))
  }

  override resetAfter(slot: number, now: number): number {
    const cells = this.#keys.get(slot)?.cells
    if (cells === undefined || cells.empty) return this.policy.interval
    const [first] = cells
    return Math.max(1, startOf(((first as Bucket).ordinal + this.wire.cells) as Ordinal, this.wire.width) - this.time.at(now))
  }

  protected override sentAt(slot: number): number {
    return this.#keyAt(slot).sentAt
  }

  override giveBack(name: string, takenIn: Ordinal, units: number, now: number): void {
    const slot = this.table.find(name)
    if (slot < 0) return
    const key = this.#refresh(slot, now)
    // Counted by a clock that was ahead, it counts in the running bucket now.
    const bucket = key.cells.find(Math.min(takenIn, this.ordinal) as Ordinal)
    if (bucket === undefined) return
    const back = Math.min(units, bucket.taken - bucket.given)
    if (!(back > 0)) return
    const wasFull = this.#known(slot, key) + 1 > this.policy.limit
    bucket.given += back
    this.markStale(slot)
    this.#refresh(slot, now)
    this.table.fields[baseOf(slot) + GATE] = Number.NEGATIVE_INFINITY
    if (wasFull) key.closed = false
    if (wasFull && this.host.connected && !this.host.degraded) this.wantExchange(slot, now, REFUND)
  }

  protected override sendDue(slot: number, now: number, batch: Batch): void {
    this.#send(slot, this.#keyAt(slot), now, batch)
  }

  #send(slot: number, key: SlidingKey, now: number, batch: Batch): void {
    this.#absorb(baseOf(slot), key)
    const cells = key.cells.toSend()
    if (cells.length === 0) {
      if (!key.capped) return
      // Nothing to tell, but something to hear: what the others admitted during an outage.
      cells.push({ ordinal: this.ordinal, taken: 0, given: 0 })
    }
    key.sentAt = now
    key.announcedInFlight = false
    key.hello = false
    this.table.flags[slot] = (this.table.flags[slot] as number) | IN_FLIGHT
    batch.add(this, slot, { policy: this.wire, key: this.wireKey(slot), cells })
  }

  override settle(ticket: Ticket, entry: SyncEntry, result: SyncResult, sent: number, now: number): void {
    if (typeof ticket !== 'number') return
    const slot = ticket
    this.table.flags[slot] = (this.table.flags[slot] as number) & ~(IN_FLIGHT | TOLD)
    const key = this.#keyAt(slot)
    if (key.away) {
      key.away = false
      key.awayIn = this.ordinal
    }
    for (const bucket of key.cells) bucket.flight = 0
    if (key.sentAt >= this.host.recoveredAt + SETTLE) key.capped = false
    const before = key.cells.others()
    for (const { ordinal, taken, given } of entry.cells) {
      const bucket = key.cells.find(ordinal)
      if (bucket === undefined) continue
      bucket.takenSent = Math.max(bucket.takenSent, taken)
      bucket.givenSent = Math.max(bucket.givenSent, given)
    }
    for (const cell of result.cells) this.#learn(key, cell, 0, !key.announcedInFlight)
    const learned = Math.max(0, key.cells.others() - before)
    this.#measure(key, learned, now)
    const own = key.ownTaken - key.cells.unsent()
    key.share.add(Math.max(0, own - key.ownThen), Math.max(0, own - key.ownThen) + learned, this.policy.limit)
    key.ownThen = own
    key.syncedAt = now
    key.synced = true
    this.markStale(slot)
    this.#refresh(slot, now)
    this.markStale(slot)
    if (result.blocked > 0) this.blockRemotely(slot, result.blocked, now, now - sent)
    this.#lookAtNews(slot, key, now)
  }

  /** Something new is known: what was too little to be sent may not be so any more. */
  #lookAtNews(slot: number, key: SlidingKey, now: number): void {
    const known = this.#total(key.cells, now) - this.#early(key.cells, now)
    const unsent = key.cells.unsent()
    if (known + 1 > this.policy.limit) {
      this.#closeIfBlocked(slot, key)
      if (unsent > 0) this.wantExchange(slot, now, PROOF)
    } else if (!key.closed && unsent >= 1 && unsent >= this.#dueAt(key, known, now)) this.wantExchange(slot, now, COUNTDOWN)
  }

  /** The excess that began a cooldown elsewhere is this node's as well: what it refuses afterwards must not begin another one. */
  #closeIfBlocked(slot: number, key: SlidingKey): void {
    if (((this.table.flags[slot] as number) & BLOCKED) !== 0) this.#close(key)
  }

  /** Takes a bucket's total over: a lower bound of what the others have, exact when something was given back. */
  #learn(key: SlidingKey, cell: Cell, inFlight: number, exact: boolean): void {
    if (cell.ordinal < this.#oldest()) return
    const bucket = key.cells.at(cell.ordinal)
    const ownSent = bucket.takenSent - bucket.givenSent + inFlight
    const others = Math.max(0, cell.taken - cell.given - ownSent)
    if (exact && cell.given > bucket.givenByAll) bucket.others = others
    else bucket.others = Math.max(bucket.others, others)
    bucket.givenByAll = Math.max(bucket.givenByAll, cell.given)
  }

  override fail(ticket: Ticket, _entry: SyncEntry, now: number, alone = false): void {
    if (typeof ticket !== 'number') return
    this.table.flags[ticket] = (this.table.flags[ticket] as number) & ~IN_FLIGHT
    const key = this.#keyAt(ticket)
    for (const bucket of key.cells) bucket.flight = 0
    if (alone) {
      key.away = true
      key.awayIn = this.ordinal
      this.retryAlone(ticket, now)
    }
    this.markStale(ticket)
  }

  override overdue(ticket: Ticket): void {
    if (typeof ticket !== 'number' || this.policy.degraded !== 'share') return
    const key = this.#keyAt(ticket)
    key.away = true
    key.awayIn = this.ordinal
    this.markStale(ticket)
  }

  override announced({ cells, key: wireKey }: TotalAnnouncement, now: number): void {
    const slot = this.locateWire(wireKey)
    if (slot < 0) return
    const key = this.#refresh(slot, now)
    if (key.cells.own() === 0 && (!key.synced || key.syncedAt < now - this.policy.interval)) key.hello = true
    key.announcedInFlight = ((this.table.flags[slot] as number) & IN_FLIGHT) !== 0
    const before = key.cells.others()
    for (const cell of cells) this.#learn(key, cell, key.cells.find(cell.ordinal)?.flight ?? 0, false)
    // When many nodes join an attack at once, only the stop messages tell that this node's share has shrunk.
    const grown = key.cells.others() - before
    if (grown > 0) {
      key.share.add(0, grown, this.policy.limit)
      // A node with few requests of its own may hear of the others' pace in no other way before it is too late.
      this.#measure(key, grown, now)
      key.syncedAt = now
      this.table.flags[slot] = (this.table.flags[slot] as number) | TOLD
    }
    if (!this.host.degraded && !key.away) this.#lookAtNews(slot, key, now)
    this.markStale(slot)
  }

  /**
   * So much was taken by the others since they were last heard of, as far as they have told. Of what they took since the key
   * was idle they still hold back half of what they may, on average.
   */
  #measure(key: SlidingKey, units: number, now: number): void {
    const fresh = key.idleAt >= key.syncedAt
    const elapsed = now - (fresh ? key.idleAt : key.syncedAt)
    if (!(elapsed > 0)) return
    const held = fresh && units > 0 ? Math.max(0, this.policy.limit - this.#total(key.cells, now)) / (2 * DIVISOR + 2) : 0
    key.paceUnits = key.paceUnits / 2 + units + held
    key.paceTime = key.paceTime / 2 + elapsed
    key.rate = key.paceUnits / key.paceTime
  }

  override lost(slot: number): void {
    this.#keyAt(slot).cells.forgetSent()
    this.markStale(slot)
  }

  override scan(from: number, now: number, batch: Batch, { all, resend }: ScanOptions): number {
    const { table } = this
    const end = Math.min(table.end, from + SCAN_STEP)
    for (let slot = from; slot < end; slot++) {
      if (batch.full) return slot
      if (table.keys[slot] === undefined) continue
      const flags = table.flags[slot] as number
      if (this.ordinal - this.ordinalOf(baseOf(slot)) > this.wire.cells && (flags & (BLOCKED | IN_FLIGHT)) === 0) {
        if (this.#isIdle(slot)) this.forget(slot)
      } else if (this.host.connected && !this.host.degraded && (flags & IN_FLIGHT) === 0) {
        const key = this.#keyAt(slot)
        this.#absorb(baseOf(slot), key)
        if (resend) this.lost(slot)
        const unsent = key.cells.unsent()
        if (key.cells.givenUnsent() || (unsent > 0 && (all || !this.#quiet(key, unsent)))) {
          this.stats.countExchange(resend ? RESEND : all ? CLOSE : SPAN_END)
          this.#send(slot, key, now, batch)
        }
      } else if ((flags & BLOCKED) !== 0) this.blockOf(slot, now)
    }
    return end >= table.end ? -1 : end
  }

  protected override sourceOf(slot: number, cost: number): SourceIndex {
    const key = this.#keys.get(slot)
    if (key === undefined || key.cells.others() === 0 || key.cells.own() + cost > this.policy.limit) return LOCAL
    return ((this.table.flags[slot] as number) & TOLD) === 0 ? GLOBAL : ANNOUNCED
  }

  override usedOf(slot: number, now: number): number {
    const key = this.#keys.get(slot)
    return key === undefined ? 0 : this.#total(key.cells, now) - this.#early(key.cells, now) + this.#uncounted(slot)
  }

  override ownOf(slot: number): number {
    return (this.#keys.get(slot)?.cells.own() ?? 0) + this.#uncounted(slot)
  }

  override wasExchanged(slot: number): boolean {
    return (this.#keys.get(slot)?.syncedAt ?? Number.NEGATIVE_INFINITY) > Number.NEGATIVE_INFINITY
  }

  override unsyncedOf(slot: number): number {
    return this.host.connected ? (this.#keys.get(slot)?.cells.unsent() ?? 0) + this.#uncounted(slot) : 0
  }

  override unsyncedSince(slot: number, now: number): number {
    const key = this.#keys.get(slot)
    if (key === undefined || (!this.host.degraded && this.#quiet(key, this.unsyncedOf(slot)))) return now
    return Math.min(now, Math.max(now - this.policy.interval, key.syncedAt))
  }

  /** What the fast path has counted and nobody has booked into its bucket yet. */
  #uncounted(slot: number): number {
    const fields = this.table.fields
    return (fields[baseOf(slot) + KNOWN] as number) - (fields[baseOf(slot) + OTHERS] as number)
  }

  #isIdle(slot: number): boolean {
    const key = this.#keys.get(slot)
    if (key === undefined) return true
    key.cells.dropBefore(this.#oldest())
    return key.cells.empty
  }

  #quiet(key: SlidingKey, unsent: number): boolean {
    const { limit } = this.policy
    const live = this.host.nodes
    return key.cells.own() * live < limit / 4 || unsent * live < limit * 0.1
  }

  protected override forget(slot: number): void {
    this.#keys.delete(slot)
    super.forget(slot)
  }

  protected override mayForget(slot: number): boolean {
    return this.ordinal - this.ordinalOf(baseOf(slot)) > this.wire.cells && this.#isIdle(slot)
  }
}
