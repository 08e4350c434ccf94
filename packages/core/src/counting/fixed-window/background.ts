import { baseOf, DUE, GATE, IN_FLIGHT, KNOWN, OTHERS, SENT, STRIDE } from '../../keys/key-table.ts'
import { COUNTDOWN, HELLO, RESEND } from '../../report/stats.ts'
import type { Cell, TotalAnnouncement } from '../../store/contract.ts'
import { type Active, nodesOf } from '../active-key.ts'
import { divisorFor, heldBack, smooth, threshold } from '../estimate.ts'
import { SETTLE } from '../gated-meter.ts'
import type { WindowMeter } from '../window-meter.ts'
import type { WindowRecords } from '../window-records.ts'
import type { WindowRule } from '../window-rule.ts'

/**
 * Fixed windows with `coordination: 'background'`: a request is rejected only if confirmed counts leave no capacity for it, never by an
 * estimate. Estimates only decide when counts are synced early.
 *
 * GATE is the number of confirmed units from which the fast path can't count a request: a sync is due, or the limit is reached.
 */
export class BackgroundFixedWindow implements WindowRule {
  readonly remembers: number = 0
  readonly #meter: WindowMeter
  readonly #records: WindowRecords

  constructor(meter: WindowMeter) {
    this.#meter = meter
    this.#records = meter.records
  }

  most(slot: number): number {
    return this.#meter.site.limitOf(slot)
  }

  allowsSlowly(slot: number, cost: number, now: number, count: boolean): boolean {
    const meter = this.#meter
    const { exchange, policy } = meter
    const { fields, flags } = meter.table
    const base = baseOf(slot)
    const limit = meter.site.limitOf(slot)
    if (meter.blocks.of(slot, now) !== undefined) {
      fields[base + GATE] = Number.NEGATIVE_INFINITY
      return false
    }
    const known = fields[base + KNOWN] as number
    const active = this.#records.find(slot)
    if (meter.decidesAlone(slot)) {
      const most = this.#mostWhileDown(slot, base)
      fields[base + GATE] = Math.min(most, limit)
      // The next try was dropped if the whole store went down meanwhile.
      if (!meter.storeAway && count) meter.wantExchange(slot, now, COUNTDOWN)
      return known + cost <= most && cost <= limit
    }
    if (active !== undefined && exchange.foundAt < meter.begunAt + TOGETHER) active.capped = false
    const full = known + 1 > limit
    fields[base + GATE] = full && limit >= 1 && policy.cooldown === 0 ? meter.fullGate(slot) : limit
    if (known + cost > limit) {
      // A request that costs less may still fit, and must be counted in a sync like any other.
      if (!full) fields[base + GATE] = Number.NEGATIVE_INFINITY
      return false
    }
    if (!count) {
      // The next request must trigger the sync that this one, which is not counted, must not cause.
      fields[base + GATE] = Number.NEGATIVE_INFINITY
      return active?.capped !== true || this.#records.own(base) + cost <= active.cap
    }
    if (active?.capped === true) return this.#allowsCapped(slot, base, cost, now)
    if (((flags[slot] as number) & (IN_FLIGHT | DUE)) === 0) {
      this.#countDown(slot, base, cost, now)
    }
    return true
  }

  /**
   * After an outage the first processes to be back can't have the units that others allowed meanwhile. So each keeps to its share of the
   * outage until a sync before which all had time to send their counts.
   */
  #allowsCapped(slot: number, base: number, cost: number, now: number): boolean {
    this.#meter.table.fields[base + GATE] = Number.NEGATIVE_INFINITY
    this.#meter.wantExchange(slot, Math.max(now, this.#meter.exchange.storeUpAt + SETTLE), RESEND)
    return this.#records.own(base) + cost <= this.#records.at(slot).cap
  }

  /** Requests a sync if `cost` more units make one due. Otherwise sets the gate to where one may be due. */
  #countDown(slot: number, base: number, cost: number, now: number): void {
    const { exchange, table } = this.#meter
    const { fields } = table
    const active = this.#records.find(slot)
    const unsent = this.#records.unsent(slot, base)
    const due = this.#dueAt(base, active, now)
    if (unsent + cost >= due || active?.hello === true || exchange.freezes(now)) {
      this.#meter.wantExchange(slot, now, active?.hello === true ? HELLO : COUNTDOWN)
      return
    }
    // While others are active, the threshold sinks as time passes: check again half way.
    const next = active !== undefined && active.rate > 0 ? unsent + Math.max(1, (due - unsent) / 2) : due
    fields[base + GATE] = Math.min(this.#meter.site.limitOf(slot), (fields[base + KNOWN] as number) + next - unsent)
  }

  #dueAt(base: number, active: Active | undefined, now: number): number {
    const { exchange, site } = this.#meter
    const nodes = nodesOf(active, exchange.nodes)
    const told = this.#told(base, active)
    const limit = site.limitOf(base / STRIDE)
    const due = threshold({
      room: limit - told,
      inFlight: active?.flight ?? 0,
      nodes,
      extrapolated: active?.expected(now) ?? 0,
      divisor: divisorFor(limit, exchange.nodes),
    })
    return due <= 1 && this.#mayHoldOne(told, nodes) ? MORE_THAN_ONE : due
  }

  /** Known units of the others, and own ones that were sent. */
  #told(base: number, active: Active | undefined): number {
    const { fields } = this.#meter.table
    return (fields[base + OTHERS] as number) + (fields[base + SENT] as number) - (active?.givenSent ?? 0)
  }

  /**
   * Whether a unit may stay unsent, though with a small limit each is due. When a key gets near its limit, all processes are notified and
   * send their counts. Until then each has at most one unsent unit: as long as all of these fit beside the units that trigger the notice,
   * there is no overshoot.
   */
  #mayHoldOne(told: number, nodes: number): boolean {
    const { limit, hot } = this.#meter.storePolicy
    return nodes <= limit - hot && told + 1 < hot
  }

  /** Whether a key's only unsent units are the one unit that may stay unsent. */
  #holdsOne(slot: number, base: number): boolean {
    const active = this.#records.find(slot)
    const unsent = this.#records.unsent(slot, base)
    return unsent > 0 && unsent <= 1 && this.#mayHoldOne(this.#told(base, active), nodesOf(active, this.#meter.exchange.nodes))
  }

  /** Known units up to which requests are allowed while the store is down. */
  #mostWhileDown(slot: number, base: number): number {
    const { failMode } = this.#meter.policy
    const limit = this.#meter.site.limitOf(slot)
    const { fields } = this.#meter.table
    const live = this.#meter.exchange.nodes
    switch (failMode) {
      case 'open':
        return Number.POSITIVE_INFINITY
      case 'closed':
        return Number.NEGATIVE_INFINITY
      default: {
        const active = this.#records.at(slot)
        const sentNet = (fields[base + SENT] as number) - active.givenSent
        const others = fields[base + OTHERS] as number
        const room = Math.max(0, limit - others - sentNet)
        const share = active.share.alone(live, limit)
        // A small limit's share may be less than one unit. If no unit were allowed then, an outage of the store would be an outage of the
        // service, so each process allows one.
        active.cap = Math.max(sentNet + (room - heldBack(sentNet, others + sentNet, room, share)) * share, room > 0 ? 1 : 0)
        active.capped = true
        return others + active.cap
      }
    }
  }

  rejected(slot: number, cost: number, now: number): void {
    const { awayIn, blocks, ordinal, policy, rollAt, site, table } = this.#meter
    if (policy.cooldown === 0 || this.#meter.decidesAlone(slot)) return
    if (ordinal <= Math.max(awayIn, this.#records.find(slot)?.awayIn ?? -1)) return
    // Not if only this request is rejected because it costs more than the remaining units.
    const closed = cost <= 1 || (table.fields[baseOf(slot) + KNOWN] as number) + 1 > site.limitOf(slot)
    if (closed && this.#meter.blocks.of(slot, now) === undefined) blocks.startCooldown(slot, now, rollAt)
  }

  byOwn(slot: number, cost: number): boolean {
    return this.#records.own(baseOf(slot)) + cost > this.#meter.site.limitOf(slot)
  }

  quiet(slot: number, base: number, unsent: number): boolean {
    const { exchange, ordinal, site } = this.#meter
    const limit = site.limitOf(slot)
    const live = exchange.nodes
    if (this.#meter.keepsAll && this.#meter.ordinalOf(base) === ordinal) return false
    if (this.#records.own(base) * live < limit * this.#quietPart(base) || unsent * live < limit * QUIET_UNSENT) return true
    // The interval has ended, so its last unit is of no use.
    return this.#meter.ordinalOf(base) !== ordinal && this.#holdsOne(slot, base)
  }

  /** With a small limit the countdown's first step is a unit or two, so skipping the key would save nothing. */
  #quietPart(base: number): number {
    const { begunAt, exchange, ordinal, rollAt, site, walkedAt } = this.#meter
    const limit = site.limitOf(base / STRIDE)
    if (this.#meter.ordinalOf(base) !== ordinal || divisorFor(limit, exchange.nodes) > 2) return QUIET_OWN
    const elapsed = (walkedAt - begunAt) / (rollAt - begunAt)
    return Math.min(QUIET_OWN, ON_PACE * Math.max(0, elapsed))
  }

  merge(slot: number, base: number, cell: Cell, reply: Cell, now: number): void {
    const { exchange, site, table } = this.#meter
    const { fields } = table
    const active = this.#records.find(slot)
    const total = reply.taken - reply.given
    const ownNet = cell.taken - cell.given
    const others = Math.max(0, total - ownNet)
    fields[base + SENT] = Math.max(fields[base + SENT] as number, cell.taken)
    if (active === undefined) {
      // After the store lost its data, its totals are too small for a while, so confirmed counts stay.
      if (reply.given > 0) this.#records.setOthers(base, others)
      else this.#records.raiseOthers(base, others)
      this.#meter.recheck(slot)
      return
    }
    active.givenSent = Math.max(active.givenSent, cell.given)
    if (active.sentAt >= exchange.storeUpAt + SETTLE) active.capped = false
    const before = fields[base + OTHERS] as number
    if (reply.given > active.givenByAll && !active.announcedInFlight) this.#records.setOthers(base, others)
    else this.#records.raiseOthers(base, others)
    active.givenByAll = Math.max(active.givenByAll, reply.given)
    const elapsed = now - active.syncedAt
    const learned = Math.max(0, others - (active.total - active.ownThen))
    if (elapsed > 0 && active.syncedAt > Number.NEGATIVE_INFINITY) active.rate = smooth(active.rate, learned / elapsed)
    active.total = Math.max(active.total, total, before + ownNet)
    active.ownThen = ownNet
    active.share.see(ownNet, active.total, site.limitOf(slot))
    active.syncedAt = now
    this.#meter.recheck(slot)
    // Units that came during the sync may make the next one due.
    this.#lookAtNews(slot, base, active, now)
  }

  announced(announcement: TotalAnnouncement, now: number): void {
    const slot = this.#meter.site.findId(announcement.key)
    const held = slot >= 0 && this.#holdsOne(slot, baseOf(slot))
    this.#meter.hear(announcement, now)
    if (held) this.#lookAtNews(slot, baseOf(slot), this.#records.at(slot), now)
  }

  /** New counts have arrived: units that were too few to be sent may now be worth a sync. */
  #lookAtNews(slot: number, base: number, active: Active, now: number): void {
    const unsent = this.#records.unsent(slot, base)
    if (unsent >= 1 && this.#meter.ordinalOf(base) === this.#meter.ordinal && unsent >= this.#dueAt(base, active, now)) {
      this.#meter.wantExchange(slot, now, COUNTDOWN)
    }
  }
}

/** If the store is found within this many milliseconds of an interval's begin, all processes find it then, and none keeps to a share. */
const TOGETHER = 10
/**
 * A span's end skips a key (`quiet`) while this process's units, times the live processes, are less than this part of the limit, and will
 * not reach it at their pace: that would need this part of an even load at the limit. Unsent units of such a key are lost when the process
 * dies, and the others allow them once more. …
 */
const QUIET_OWN = 1 / 4
const ON_PACE = 3 / 4
/** … or if less than this part of its share of the limit is unsent. */
const QUIET_UNSENT = 0.05
/** Due at the next unit, or a part of one. */
const MORE_THAN_ONE = 1 + 2 ** -20
