import { CLOSE, SPAN_END } from '../../report/stats.ts'
import { servesLease } from '../../store/leases/grant.ts'
import { hearReset, heldOf, newLease } from '../../store/leases/lease.ts'
import { intervalOf } from '../../time/calendar.ts'
import { endOf, type Ordinal, ordinalAt, startOf } from '../../time/intervals.ts'
import type { MakeShared } from '../site.ts'
import { KeyLeases } from './key-leases.ts'
import { newIncarnation } from './leasing.ts'
import { LeaseMeter } from './meter.ts'
import type { Quota } from './quota.ts'

/** Idle intervals after which a key is removed. */
const IDLE_INTERVALS = 2
/** After this part of the interval, or this many milliseconds if that is sooner, a store that had no units for a key is tried again. */
const EMPTY_PART = 1 / 20
const EMPTY_MOST = 1_000
/** More units are requested when the remaining ones last for this many round trips and milliseconds. */
const LOW_ROUND_TRIPS = 2
const LOW_TIME = 2
/** Spans before the last one within which the next interval's quota may be requested: clocks differ a little. */
const EARLY = 1.25

/** Fixed windows with quota taken ahead. */
export const leasedIntervals: MakeShared = (site, store) => {
  const { interval } = site.policy
  return new LeaseMeter(site, store, { width: interval, ttl: 2 * interval }, intervalQuota)
}

/** The units of an interval. Its lease ends with it, and that of the next interval is requested a little earlier. */
function intervalQuota(meter: LeaseMeter<KeyLeases>): Quota<KeyLeases> {
  const { site, table, time, store } = meter
  /** Whether the process is frozen now and then. Then it takes nothing ahead, because a frozen process returns no units that others need. */
  const freezes = (now: number): boolean => store.freezes(now)
  let incarnation = newIncarnation()

  function moveKey(key: KeyLeases, ordinal: Ordinal, limit: number, now: number): void {
    if (ordinal > key.current.ordinal) key.moveTo(ordinal, incarnation, limit, now, site.policy.interval)
  }

  return {
    reused: false,

    ordinalOf: (key) => key.current.ordinal,
    used: (_slot, key) => (key === undefined ? 0 : key.current.taken - key.current.given),
    fits: (_slot, { current }, cost) => heldOf(current) >= cost,
    mayUse: (slot, _key, units) => units <= site.limitOf(slot),
    count(_slot, { current }, cost) {
      current.taken += cost
    },
    untake(_slot, { current }, mark) {
      current.taken = mark
    },

    refund(name, ordinal, units, now) {
      const slot = table.find(name)
      const key = slot < 0 ? undefined : meter.keys[slot]
      // A later ordinal comes from a clock that was ahead. Its units count in the running interval now.
      if (key === undefined || ordinal < key.current.ordinal) return
      const { current } = key
      const back = Math.min(units, current.taken - current.given - current.cleared)
      if (!(back > 0)) return
      current.given += back
      key.mayHave(now)
      // Others may reject because of these units.
      if (current.tail) meter.leasing.want(slot, now)
    },

    reset(_name, slot, key) {
      if (key === undefined) return
      const epoch = site.resetAt(site.idOf(slot))
      hearReset(key.current, epoch)
      key.others = 0
      if (key.next !== undefined) hearReset(key.next, epoch)
    },

    /** By the process's clock, but not before the units of its lease end by the store's. */
    backAt(key) {
      const current = key?.current
      if (current === undefined) return meter.rollAt
      return current.ordinal < meter.ordinal ? current.until : Math.max(meter.rollAt, current.until)
    },

    newKey: (_slot, limit, now) => new KeyLeases(newLease(meter.ordinal, incarnation, limit), now),
    newLease: (limit) => newLease(meter.ordinal, incarnation, limit),
    follow(_slot, key, limit, now) {
      if (key.current.ordinal < meter.ordinal && now >= key.current.until) moveKey(key, meter.ordinal, limit, now)
      else if (key.next !== undefined && now >= key.next.from) moveKey(key, key.next.ordinal, limit, now)
    },
    changed(slot, key) {
      if (key.current.ordinal > meter.ordinal && key.current.heard === 0) key.moveBack(meter.ordinal, incarnation, site.limitOf(slot))
    },

    visit(slot, key, now, batch, leaving) {
      const { ordinal, policy } = meter
      const { current, next } = key
      if (leaving && next !== undefined && heldOf(next) > 0) meter.leasing.send(slot, key, next, now, batch, CLOSE)
      if (leaving || next !== undefined || key.report || current.ordinal !== ordinal || current.taken === 0 || freezes(now)) return false
      const left = endOf(ordinal, policy.interval) - time.at(now)
      if (left <= 0 || left > policy.interval / policy.spans + 1) return false
      key.next = newLease((ordinal + 1) as Ordinal, incarnation, site.limitOf(slot))
      meter.leasing.send(slot, key, key.next, now, batch, SPAN_END)
      return false
    },
    isIdle: (_slot, key) => key === undefined || meter.ordinal - key.current.ordinal >= IDLE_INTERVALS,
    mayForget(_slot, key) {
      if (key === undefined || meter.ordinal - key.current.ordinal > 0) return true
      // A key without requests, as after a manual block.
      return key.sentAt === Number.NEGATIVE_INFINITY && key.current.taken === 0 && key.waiting.first === undefined
    },
    forgotten(_slot, key) {
      // The store's counts of the key belong to an earlier incarnation from now on.
      if (key !== undefined) incarnation = newIncarnation()
    },

    ahead(key, lease, _waiting, limit, now) {
      if (freezes(now)) return 0
      const { interval } = site.policy
      key.measure(now, interval)
      const left = lease === key.next ? interval : time.monotonicAt(endOf(lease.ordinal, interval)) - now
      return key.ahead(lease, left, meter.nodes, limit)
    },
    /** A store assumes that intervals of a calendar begin later than they do. */
    early(ordinal) {
      const { interval, spans } = site.policy
      return (EARLY * interval) / spans + startOf(ordinal, interval) - intervalOf(ordinal, site.policy).start
    },

    answered(slot, key, lease, ask, reply, now) {
      const { interval, calendar } = site.policy
      const { end } = intervalOf(lease.ordinal, site.policy)
      const served = servesLease(ask, reply.now, interval) && reply.now < end
      if (lease !== key.current) {
        if (lease === key.next && !served) key.next = undefined
        return false
      }
      key.low = Number.isNaN(key.pace) ? 0 : key.pace * (LOW_ROUND_TRIPS * key.roundTrip + LOW_TIME)
      if (served) return true
      // The process's clock was behind: the next interval runs. No reply may move a key further.
      if (reply.now >= end) {
        const running = calendar?.at(reply.now).ordinal ?? ordinalAt(reply.now, interval)
        moveKey(key, Math.min(running, meter.ordinal + 1) as Ordinal, site.limitOf(slot), now)
      }
      // The process's clock was ahead. Once the clock is corrected, the key follows.
      else meter.keyOf(slot, now)
      return false
    },
    failed(key, lease) {
      if (lease.heard === 0 && lease === key.next) key.next = undefined
    },
    ranOut(key, cost, limit, now) {
      const pause = Math.min(EMPTY_MOST, site.policy.interval * EMPTY_PART)
      key.emptyFor = cost
      key.emptyUntil = limit - key.current.used < cost ? key.current.until : now + pause
    },
    announced(_slot, key, lease, now) {
      if (lease.free >= 1) key.mayHave(now)
      const { first } = key.waiting
      if (lease === key.current && first !== undefined && lease.free >= first.units) key.recallUntil = Number.NEGATIVE_INFINITY
    },
  }
}
