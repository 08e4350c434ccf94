import { baseOf, DUE, GATE, IN_FLIGHT, KNOWN, OTHERS, SENT, STRIDE, TAG } from '../../keys/key-table.ts'
import { COUNTDOWN, HELLO, RESEND } from '../../report/stats.ts'
import type { Cell, TotalAnnouncement } from '../../store/contract.ts'
import { spanEnd } from '../../time/intervals.ts'
import type { Refusal, Reserving } from '../meter.ts'
import type { Active } from '../shared/active-key.ts'
import type { Ticket } from '../shared/batch.ts'
import { divisorFor, smooth, threshold } from '../shared/estimate.ts'
import { SETTLE } from '../shared/gated-meter.ts'
import { ReservingMeter } from './reserving.ts'

/**
 * Fixed windows with `coordination: 'background'`: a request is refused only when the units that are known to have been taken
 * leave no room for it, so nobody is refused by an estimate. Estimates only decide when counts are exchanged early.
 *
 * GATE is the number of known units at which a request is not counted at once: an exchange falls due, or the limit is reached.
 */
export class BackgroundFixedWindow extends ReservingMeter implements Reserving {
  get reserving(): Reserving | undefined {
    return this.policy.strict ? this : undefined
  }

  protected override reconsider(slot: number, cost: number, now: number, count: boolean): boolean {
    const base = baseOf(slot)
    const fields = this.table.fields
    const limit = this.site.limitOf(slot)
    if (fields[base + TAG] !== this.tag) this.refresh(slot, now)
    if (this.blockOf(slot, now) !== undefined) {
      fields[base + GATE] = Number.NEGATIVE_INFINITY
      return false
    }
    const known = fields[base + KNOWN] as number
    const active = this.activeOf(slot)
    if (this.decidesAlone(slot)) {
      const most = this.#mostWhileDegraded(slot, base, now)
      fields[base + GATE] = Math.min(most, limit)
      // The next try was dropped if the whole store went away meanwhile.
      if (!this.storeAway && count) this.wantExchange(slot, now, COUNTDOWN)
      return known + cost <= most && cost <= limit
    }
    if (active !== undefined && this.exchange.foundAt < this.rollAt - this.policy.interval + TOGETHER) active.capped = false
    const full = known + 1 > limit
    fields[base + GATE] = full && limit >= 1 && this.policy.cooldown === 0 ? this.fullGate(slot) : limit
    if (known + cost > limit) {
      // One that costs less may still fit, and has to be told like any other.
      if (!full) fields[base + GATE] = Number.NEGATIVE_INFINITY
      return false
    }
    if (!count) {
      // The next request asks for the exchange that this one, which is not counted, must not cause.
      fields[base + GATE] = Number.NEGATIVE_INFINITY
      return active?.capped !== true || this.own(base) + cost <= active.cap
    }
    if (active?.capped === true) return this.#admitsCapped(slot, base, cost, now)
    if (this.exchange.connected && ((this.table.flags[slot] as number) & (IN_FLIGHT | DUE)) === 0) {
      this.#countDown(slot, base, cost, now)
    }
    return true
  }

  /**
   * After an outage the first nodes to be back can't know yet what the others admitted meanwhile. So each keeps to its share of
   * the outage until an exchange before which all nodes had time to send their counts.
   */
  #admitsCapped(slot: number, base: number, cost: number, now: number): boolean {
    this.table.fields[base + GATE] = Number.NEGATIVE_INFINITY
    this.wantExchange(slot, Math.max(now, this.exchange.recoveredAt + SETTLE), RESEND)
    return this.own(base) + cost <= this.activate(slot).cap
  }

  /** Asks for an exchange if `cost` more units make one due; else sets the gate to where one may fall due. */
  #countDown(slot: number, base: number, cost: number, now: number): void {
    const fields = this.table.fields
    const active = this.activeOf(slot)
    const unsent = this.unsent(slot, base)
    const due = this.#dueAt(base, active, now)
    if (unsent + cost >= due || active?.hello === true) {
      this.wantExchange(slot, now, active?.hello === true ? HELLO : COUNTDOWN)
      return
    }
    // With others known to be active the threshold sinks as time passes: look again half way.
    const next = active !== undefined && active.rate > 0 ? unsent + Math.max(1, (due - unsent) / 2) : due
    fields[base + GATE] = Math.min(this.site.limitOf(slot), (fields[base + KNOWN] as number) + next - unsent)
  }

  #dueAt(base: number, active: Active | undefined, now: number): number {
    const nodes = this.#nodesOf(active)
    const told = this.#told(base, active)
    const limit = this.site.limitOf(base / STRIDE)
    const due = threshold({
      room: limit - told,
      inFlight: active?.flight ?? 0,
      nodes,
      extrapolated: active === undefined ? 0 : expected(active, now),
      divisor: divisorFor(limit, this.exchange.nodes),
    })
    return due <= 1 && this.#mayHoldOne(told, nodes) ? MORE_THAN_ONE : due
  }

  /** The nodes that a key's traffic is spread over: as many as are alive, or more by this node's share of it. */
  #nodesOf(active: Active | undefined): number {
    const live = this.exchange.nodes
    return active === undefined ? live : Math.max(live, 1 / active.share.value(live))
  }

  /** Units of the others, as far as known, and those of its own that this node has told. */
  #told(base: number, active: Active | undefined): number {
    const fields = this.table.fields
    return (fields[base + OTHERS] as number) + (fields[base + SENT] as number) - (active?.givenSent ?? 0)
  }

  /**
   * Whether a unit can be held back, though of a small limit each is due. When a key becomes hot all nodes are told, and send
   * what they have. Until then they hold back one unit each at most: as long as there is room for that besides what makes a
   * key hot, nobody admits more because of it.
   */
  #mayHoldOne(told: number, nodes: number): boolean {
    const { limit, hot } = this.storePolicy
    return nodes <= limit - hot && told + 1 < hot
  }

  /** Whether all that is unsent of a key is a unit that can be held back. */
  #holdsOne(slot: number, base: number): boolean {
    const active = this.activeOf(slot)
    const unsent = this.unsent(slot, base)
    return unsent > 0 && unsent <= 1 && this.#mayHoldOne(this.#told(base, active), this.#nodesOf(active))
  }

  /** Known units up to which requests are admitted while the store is away. */
  #mostWhileDegraded(slot: number, base: number, now: number): number {
    const { spans, interval, degraded } = this.policy
    const limit = this.site.limitOf(slot)
    const fields = this.table.fields
    const live = this.exchange.nodes
    switch (degraded) {
      case 'open':
        return Number.POSITIVE_INFINITY
      case 'closed':
        return Number.NEGATIVE_INFINITY
      case 'published': {
        const active = this.activate(slot)
        if (now >= active.spanEnd) {
          active.spanTaken = this.own(base)
          const { time } = this
          active.spanEnd = time.monotonicAt(spanEnd(time.at(now), interval, spans))
        }
        return (fields[base + OTHERS] as number) + active.spanTaken + limit / spans / live
      }
      default: {
        const active = this.activate(slot)
        const sentNet = (fields[base + SENT] as number) - active.givenSent
        const others = fields[base + OTHERS] as number
        const room = Math.max(0, limit - others - sentNet)
        // A small limit's share may be less than one unit. If nothing were admitted then, an outage of the store would be
        // an outage of the service, so each node lets one unit pass.
        active.cap = Math.max(sentNet + room * active.share.value(live), room > 0 ? 1 : 0)
        active.capped = true
        return others + active.cap
      }
    }
  }

  override refuse(slot: number, cost: number, now: number): Refusal {
    const { cooldown } = this.policy
    const base = baseOf(slot)
    const forgiven = this.decidesAlone(slot) || this.ordinal <= Math.max(this.amnesty, this.activeOf(slot)?.awayIn ?? -1)
    if (cooldown > 0 && !forgiven && this.closedFor(base, cost)) {
      if (this.blockOf(slot, now) === undefined) this.blocks.startCooldown(slot, now, this.rollAt)
    }
    return this.explain(slot, cost, now)
  }

  exceeded(slot: number, now: number): void {
    this.tellExceeded(slot, now)
  }

  /**
   * Whether a request must wait for the store (`strict`): so little is left that the nodes together could admit
   * too much before they hear of each other.
   */
  mustAsk(slot: number, now: number): boolean {
    if (!this.policy.strict || !this.exchange.connected || this.decidesAlone(slot)) return false
    const base = baseOf(slot)
    const fields = this.table.fields
    if (fields[base + TAG] !== this.tag) this.refresh(slot, now)
    const active = this.activeOf(slot)
    const nodes = this.#nodesOf(active)
    const unsent = this.unsent(slot, base)
    const others = Math.max(unsent * (nodes - 1), active === undefined ? 0 : expected(active, now))
    return this.site.limitOf(slot) - (fields[base + KNOWN] as number) - others < STRICT_TAIL * nodes
  }

  override overdue(ticket: Ticket): void {
    const active = typeof ticket === 'number' ? this.activeOf(ticket) : undefined
    if (active === undefined || this.policy.degraded !== 'share') return
    active.away = true
    active.awayIn = this.ordinal
    this.recheck(ticket as number)
  }

  protected override quiet(slot: number, base: number, unsent: number): boolean {
    const limit = this.site.limitOf(slot)
    const live = this.exchange.nodes
    if (this.keepsAll && this.ordinalOf(base) === this.ordinal) return false
    if (this.own(base) * live < limit * this.#quietPart(base) || unsent * live < limit * QUIET_UNSENT) return true
    // The interval is over, and nobody needs its last unit any more.
    return this.ordinalOf(base) !== this.ordinal && this.#holdsOne(slot, base)
  }

  /** With a small limit the countdown's first step is a unit or two, so being quiet would save nothing. */
  #quietPart(base: number): number {
    const { interval } = this.policy
    const limit = this.site.limitOf(base / STRIDE)
    if (this.ordinalOf(base) !== this.ordinal || divisorFor(limit, this.exchange.nodes) > 2) return QUIET_OWN
    const elapsed = 1 - (this.rollAt - this.walkedAt) / interval
    return Math.min(QUIET_OWN, ON_PACE * Math.max(0, elapsed))
  }

  protected override merge(slot: number, base: number, cell: Cell, reply: Cell, _sent: number, now: number): void {
    const fields = this.table.fields
    const active = this.activeOf(slot)
    const total = reply.taken - reply.given
    const ownNet = cell.taken - cell.given
    const others = Math.max(0, total - ownNet)
    fields[base + SENT] = Math.max(fields[base + SENT] as number, cell.taken)
    if (active === undefined) {
      // After the store lost its data its totals are too small for a while; what was known stays known.
      if (reply.given > 0) this.setOthers(base, others)
      else this.raiseOthers(base, others)
      this.recheck(slot)
      return
    }
    active.givenSent = Math.max(active.givenSent, cell.given)
    active.flight = 0
    if (active.sentAt >= this.exchange.recoveredAt + SETTLE) active.capped = false
    const before = fields[base + OTHERS] as number
    if (reply.given > active.givenByAll && !active.announcedInFlight) this.setOthers(base, others)
    else this.raiseOthers(base, others)
    active.givenByAll = Math.max(active.givenByAll, reply.given)
    const elapsed = now - active.syncedAt
    const learned = Math.max(0, others - (active.total - active.ownThen))
    if (elapsed > 0 && active.syncedAt > Number.NEGATIVE_INFINITY) active.rate = smooth(active.rate, learned / elapsed)
    active.total = Math.max(active.total, total, before + ownNet)
    active.ownThen = ownNet
    active.share.see(ownNet, active.total, this.site.limitOf(slot))
    active.syncedAt = now
    this.recheck(slot)
    // Units that came while the exchange was under way may make the next one due.
    this.#lookAtNews(slot, base, active, now)
  }

  override announced(announcement: TotalAnnouncement, now: number): void {
    const slot = this.site.findId(announcement.key)
    const held = slot >= 0 && this.#holdsOne(slot, baseOf(slot))
    super.announced(announcement, now)
    if (held) this.#lookAtNews(slot, baseOf(slot), this.activate(slot), now)
  }

  /** Something new is known: units that were too few to be sent may now be worth an exchange. */
  #lookAtNews(slot: number, base: number, active: Active, now: number): void {
    const unsent = this.unsent(slot, base)
    if (unsent >= 1 && this.ordinalOf(base) === this.ordinal && unsent >= this.#dueAt(base, active, now)) {
      this.wantExchange(slot, now, COUNTDOWN)
    }
  }
}

/** Units that others are expected to have taken since the last exchange; before the first one nothing is known of them. */
function expected({ rate, syncedAt }: Active, now: number): number {
  return rate === 0 ? 0 : rate * Math.max(0, now - syncedAt)
}

/** When the store was found within so many milliseconds of an interval's begin, all nodes found it then, and none keeps to a share. */
const TOGETHER = 10
/**
 * A key is quiet while this node, times the live nodes, has taken less than this part of the limit, and is not on its way
 * to reach it: that would need this part of what an even load at the limit takes. What is held back of such a key is lost
 * when the node dies, and the others admit it once more. …
 */
const QUIET_OWN = 1 / 4
const ON_PACE = 3 / 4
/** … or holds less than this part of its share of the limit unsent. */
const QUIET_UNSENT = 0.05
/** Due when another unit comes, or a part of one. */
const MORE_THAN_ONE = 1 + 2 ** -20
/** A request waits for the store when less than this many units per node are expected to be left. */
const STRICT_TAIL = 2.5
