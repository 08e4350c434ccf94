import type { Rejection } from '../../algorithms/meter.ts'
import { EARLY } from '../../algorithms/roll.ts'
import { BLOCKED, baseOf, DUE, GATE, IN_FLIGHT, KNOWN } from '../../keys/key-table.ts'
import { COUNTDOWN, HELLO, PROOF, RESEND } from '../../report/stats.ts'
import type { Ordinal } from '../../time/intervals.ts'
import { threshold } from '../estimate.ts'
import { SETTLE } from '../gated-meter.ts'
import type { SlidingKey } from './key.ts'
import type { SlidingWindowMeter } from './meter.ts'
import { DIVISOR } from './pace.ts'
import type { SlidingRecords } from './records.ts'
import type { SlidingRule } from './rule.ts'
import { mostAlone, opensAlone, opensIn, reopensBelow, type WindowAt } from './wait.ts'

/** Requests of a slightly too large burst that all processes together reject, as a part of the limit. */
const FEW = 0.2

/**
 * `slidingWindow()`: no more than the limit in any stretch of `interval` length. The interval is cut into `subWindows` of the store's
 * clock. With b the running one, w their width and c_j the units allowed in sub-window j,
 *
 *     W(t) = c_{b−B} + … + c_b − min(0.02·MAX, c_{b−B}·(t/w − b))
 *
 * and a request is rejected if W by confirmed counts, own units included, leaves no capacity for it. So no request is rejected by an
 * estimate. A key that reached the limit is closed until `reopenAt`·MAX units are free.
 */
export class BackgroundSlidingWindow implements SlidingRule {
  readonly #meter: SlidingWindowMeter
  readonly #records: SlidingRecords

  constructor(meter: SlidingWindowMeter) {
    this.#meter = meter
    this.#records = meter.records
  }

  allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean {
    const meter = this.#meter
    const { exchange } = meter
    const key = meter.refresh(slot, now)
    const base = baseOf(slot)
    const { fields, flags } = meter.table
    const known = this.#records.known(slot, key)
    const limit = meter.site.limitOf(slot)
    fields[base + GATE] = Number.NEGATIVE_INFINITY
    if (meter.blocks.of(slot, now) !== undefined) return false
    if (meter.storeAway || key.away) {
      const most = this.#mostWhileDown(key, known)
      fields[base + GATE] = Math.min(most, limit) + key.early
      // The next try was dropped if the whole store went down meanwhile.
      if (!meter.storeAway && count) meter.wantExchange(slot, now, RESEND)
      return known + cost <= most && cost <= limit
    }
    if (key.closed) {
      const byPart = this.#byPart(key)
      if ((byPart ? known : this.#records.whole(key, now)) > reopensBelow(limit, this.#records.shape, byPart && key.burst)) return false
      this.#open(key, now)
    }
    if (known <= reopensBelow(limit, this.#records.shape)) key.rejected = 0
    const idle = ((flags[slot] as number) & (IN_FLIGHT | DUE)) === 0
    if (known + cost > limit) {
      // Send the units of a full window, because others may not have them yet.
      if (count && idle && key.cells.unsent() > 0) meter.wantExchange(slot, now, PROOF)
      return false
    }
    // The others' units from while the store was down have left the window.
    if (key.capped && now > exchange.storeUpAt + meter.policy.interval) key.capped = false
    if (key.capped) {
      // As for a fixed window: see `allowsCapped` there.
      if (count) meter.wantExchange(slot, Math.max(now, exchange.storeUpAt + SETTLE), RESEND)
      return key.ownTaken + cost <= key.cap
    }
    if (!count) return true
    fields[base + GATE] = limit + key.early
    // Units of a burst are booked soon, so that they leave when it does.
    if (this.#records.byBucket) fields[base + GATE] = Math.min(limit + key.early, known + key.early + this.#records.bookedTogether(key))
    if (idle) this.#countDown(slot, base, key, cost, now)
    return true
  }

  /**
   * Whether a closed key opens as its parts leave: an honest burst has few rejections. In a flood it opens by whole sub-windows, which
   * costs less.
   */
  #byPart({ rejected, limit }: SlidingKey): boolean {
    return rejected <= Math.max(2, (FEW * limit) / this.#meter.exchange.nodes)
  }

  #countDown(slot: number, base: number, key: SlidingKey, cost: number, now: number): void {
    const unsent = key.cells.unsent()
    const due = this.#dueAt(key, this.#records.known(slot, key), now)
    if (unsent + cost >= due || key.hello) {
      this.#meter.wantExchange(slot, now, key.hello ? HELLO : COUNTDOWN)
      return
    }
    const next = key.rate > 0 ? unsent + Math.max(1, (due - unsent) / 2) : due
    this.#meter.table.fields[base + GATE] = Math.min(
      this.#meter.table.fields[base + GATE] as number,
      (this.#meter.table.fields[base + KNOWN] as number) + next - unsent,
    )
  }

  #dueAt(key: SlidingKey, known: number, now: number): number {
    const live = this.#meter.exchange.nodes
    const flight = key.cells.flight()
    return threshold({
      room: key.limit - (known - key.cells.unsent()),
      inFlight: flight,
      nodes: Math.min(3 * live, Math.max(live, 1 / key.share.value(live))),
      extrapolated: key.rate * Math.max(0, now - Math.max(key.syncedAt, now - this.#meter.policy.interval)),
      divisor: key.limit < 20 * live ? 3 : DIVISOR,
    })
  }

  #mostWhileDown(key: SlidingKey, known: number): number {
    const { failMode } = this.#meter.policy
    const { limit } = key
    const live = this.#meter.exchange.nodes
    if (failMode === 'open') return Number.POSITIVE_INFINITY
    if (failMode === 'closed') return Number.NEGATIVE_INFINITY
    const unsent = key.cells.unsent()
    const most = mostAlone({ limit, sum: known, own: key.cells.own(), unsent }, key.share.alone(live, limit))
    key.cap = key.ownTaken - unsent + most
    key.capped = true
    return known - unsent + most
  }

  rejected(slot: number, cost: number, now: number): void {
    const key = this.#records.at(slot)
    const known = this.#records.known(slot, key)
    const { cooldown } = this.#meter.policy
    const limit = this.#meter.site.limitOf(slot)
    key.rejected++
    if (!this.#meter.storeAway && !key.away && (cost <= 1 || known + 1 > limit) && this.#meter.blocks.of(slot, now) === undefined) {
      const first = !key.closed
      if (known + 1 > limit) this.#close(key)
      if (first && key.closed && cooldown > 0 && this.#meter.time.at(now) - this.#meter.policy.interval >= this.#amnestyEnd(key))
        this.#meter.blocks.startCooldown(slot, now, now)
    }
  }

  /** Units that were allowed while the store was down start no cooldown as long as they are in the window. */
  #amnestyEnd({ awayIn }: SlidingKey): number {
    const last = Math.max(this.#meter.awayIn, awayIn)
    return last < 0 ? Number.NEGATIVE_INFINITY : this.#records.leaves(last as Ordinal)
  }

  blockedRemotely(slot: number, now: number): void {
    const key = this.#records.find(slot)
    if (key !== undefined && this.#meter.usedOf(slot, now) + 1 > this.#meter.site.limitOf(slot)) this.#closeIfBlocked(slot, key)
  }

  explain(slot: number, cost: number, now: number): Rejection {
    const block = this.#meter.blocks.of(slot, now)
    if (block !== undefined) {
      const retryAfterMs = Math.max(block.until - now, block.manual ? 0 : this.#opensIn(slot, cost, now))
      return { reason: block.manual ? 'blocked' : 'cooldown', retryAfterMs }
    }
    const key = this.#records.at(slot)
    // After an outage the key keeps to its share for a moment, although the limit is not reached.
    const capped = key.capped && this.#meter.usedOf(slot, now) + cost <= key.limit
    if (this.#meter.storeAway || key.away || capped) {
      // Own units leave with their sub-window by this process's time, so the uncertainty of the store's is not added.
      const window = this.#windowAt(this.#meter.time.at(now))
      return {
        reason: 'storeDown',
        retryAfterMs: opensAlone(key, cost, key.share.alone(this.#meter.exchange.nodes, key.limit), window),
      }
    }
    return { reason: 'limit', retryAfterMs: this.#opensIn(slot, cost, now) }
  }

  #opensIn(slot: number, cost: number, now: number): number {
    const key = this.#records.at(slot)
    return opensIn(key, cost, this.#windowAt(this.#records.edge(now) - EARLY / 2, this.#byPart(key)))
  }

  #windowAt(at: number, byPart = false): WindowAt {
    return {
      policy: this.#meter.policy,
      shape: this.#records.shape,
      width: this.#meter.storePolicy.width,
      bucket: this.#records.bucket(),
      byBucket: this.#records.byBucket,
      byPart,
      at,
    }
  }

  /**
   * Opens a closed key if enough of its limit was free at some time since the last check. Otherwise a process without a request at that
   * time would stay closed while others fill the window again.
   */
  reopen(key: SlidingKey, now: number): void {
    const most = reopensBelow(key.limit, this.#records.shape)
    const { parts, subWindows } = this.#records.shape
    const running = this.#records.bucket()
    for (let bucket = key.lookedAt + 1; bucket <= running; bucket++) {
      const oldest = ((bucket - subWindows) * parts) as Ordinal
      if (this.#records.whole(key, now, oldest, bucket * parts) <= most) {
        this.#open(key, now)
        return
      }
    }
    // Leaving units are released further during the running sub-window, but the units that closed the key still count.
    key.lookedAt = Math.max(key.lookedAt, running - 1)
  }

  #open(key: SlidingKey, now: number): void {
    key.open()
    if (!this.#byPart(key)) key.openedIn = this.#records.opens(now)
    key.rejected = 0
  }

  #close(key: SlidingKey): void {
    key.close()
    key.lookedAt = this.#records.bucket()
    key.burst = this.#records.isBurst(key)
  }

  /** New counts have arrived: units that were too few to be sent may now be worth a sync. */
  lookAtNews(slot: number, key: SlidingKey, now: number): void {
    const known = this.#records.total(key.cells, now) - this.#records.early(key, now)
    const unsent = key.cells.unsent()
    if (known + 1 > key.limit) {
      this.#closeIfBlocked(slot, key)
      if (unsent > 0) this.#meter.wantExchange(slot, now, PROOF)
    } else if (!key.closed && unsent >= 1 && unsent >= this.#dueAt(key, known, now)) this.#meter.wantExchange(slot, now, COUNTDOWN)
  }

  /** Another process began a cooldown: rejections by the same units must not begin another one here. */
  #closeIfBlocked(slot: number, key: SlidingKey): void {
    if (((this.#meter.table.flags[slot] as number) & BLOCKED) !== 0) this.#close(key)
  }
}
