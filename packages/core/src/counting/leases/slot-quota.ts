import { LocalSlots } from '../../algorithms/concurrency/local.ts'
import { Slices } from '../../keys/slices.ts'
import { HELD } from '../../store/leases/ask.ts'
import { isOver, newLease, surrender } from '../../store/leases/lease.ts'
import type { MakeShared } from '../site.ts'
import { KeySlots } from './key-slots.ts'
import { newIncarnation } from './leasing.ts'
import { LeaseMeter } from './meter.ts'
import type { Quota } from './quota.ts'

/** Reports of a process within the time for which the store waits for one: a few may be lost. */
const RENEWALS = 4
/** Milliseconds after which a store that had no slot for a key is tried again, unless it announces one. */
const EMPTY = 100
/** Milliseconds between two processes that request the same slot, on average: timers round to one. */
const LOT = 0.5
/** Milliseconds for which a key without slots is kept: a request may still wait for it. */
const WAITED_FOR = 5_000

/** Requests in flight over all processes: each process takes slots ahead. It continues with the slots of the local meter before it. */
export const leasedSlots: MakeShared = (site, store, before) => {
  const local = (before as LocalSlots | undefined) ?? new LocalSlots(site)
  const { lifetime } = store
  const made = new LeaseMeter<KeySlots>(site, store, { width: lifetime, ttl: lifetime }, (meter) => slotQuota(meter, local))
  made.allowed = local.allowed
  made.rollAt = local.rollAt
  return made
}

/**
 * Slots of requests in flight. The local meter counts the requests in flight here, and frees slots that were not released. A key's lease is
 * its slots in the cluster, for units that come back (`HELD`).
 *
 * The store keeps a process's slots as long as it gets reports, so the slots in use are reported every now and then. A process that was
 * silent for too long must not use its slots: it begins with a new lease, and reports the requests that still run.
 */
function slotQuota(meter: LeaseMeter<KeySlots>, local: LocalSlots): Quota<KeySlots> {
  const { site, store } = meter
  /** The store went down or came back: waiting requests may fit now. */
  let freedAt = 0
  const freeing = new Slices(site.table, store.defer, (slot) => {
    const key = meter.keys[slot]
    if (key !== undefined) mayHaveRoom(slot, key, freedAt)
  })

  /** There may be slots for a key that had none. */
  function mayHaveRoom(slot: number, key: KeySlots, now: number): void {
    key.mayHave(now)
    site.freed(slot)
  }

  function ran(slot: number, key: KeySlots): KeySlots {
    key.run(local.usedOf(slot))
    return key
  }

  /** A request has ended. */
  function released(slot: number, now: number): void {
    const key = meter.keys[slot]
    if (key === undefined) return
    const { current } = ran(slot, key)
    key.mayHave(now)
    if (current.tail && hasPart(slot, key)) {
      surrender(current, 0)
      key.letOthers(now)
    } else meter.leasing.serve(slot, key, now)
    if (current.tail || key.owes || key.waiting.first !== undefined) meter.leasing.want(slot, now)
  }

  /**
   * Whether a process has more than its part of the slots, or would with `more`. Then others come first, because they might never get one.
   */
  function hasPart(slot: number, { hold }: KeySlots, more = 0): boolean {
    return hold > 0 && (hold + more) * meter.nodes > site.limitOf(slot)
  }

  /**
   * Delays the request for a free slot at random. With fewer slots than processes, all receive its announcement together, and the process
   * nearest to the store would always get it. Processes that have a slot come last.
   */
  function drawLots(slot: number, key: KeySlots, now: number): void {
    const most = LOT * meter.nodes
    if (hasPart(slot, key, 1)) key.letOthers(now, most)
    else key.recallUntil = now + 1 + most * store.random()
  }

  return {
    reused: true,
    get inFlight() {
      return local.inFlight
    },

    used: (slot) => local.usedOf(slot),
    ordinalOf: () => local.ordinal,
    fits: (slot, key, cost) => key.holds(local.usedOf(slot) + cost),
    /** Also frees slots that were not released. */
    mayUse(slot, key, units, now) {
      const may = local.allows(slot, units, now)
      ran(slot, key)
      return may
    },
    count(slot, key, cost, now) {
      local.add(slot, cost, now)
      ran(slot, key)
    },
    untake(slot, key, mark, cost) {
      local.untake(slot, mark, cost)
      ran(slot, key)
    },
    refund(name, ordinal, units, now) {
      const slot = local.holderOf(name, ordinal)
      local.refund(name, ordinal, units)
      if (slot >= 0) released(slot, now)
    },
    reset(name, slot, key, now) {
      local.reset(name, slot, now)
      if (key !== undefined) ran(slot, key)
    },
    /** The end of a request in flight can't be predicted. */
    backAt: (_key, now) => now,

    newKey: (slot, limit) => ran(slot, new KeySlots(newLease(HELD, newIncarnation(), limit))),
    newLease: (limit) => newLease(HELD, newIncarnation(), limit),
    follow(_slot, key, limit, now) {
      if (isOver(key.current, now)) key.renounce(newIncarnation(), limit)
    },
    storeChanged(now) {
      freedAt = now
      freeing.begin()
    },
    roll(now) {
      local.roll(now)
      return local.rollAt
    },

    /** As often as processes report, and as overdue slots are searched for. */
    nextWalk: (now) => Math.min(now + store.lifetime / RENEWALS, Math.max(now + 1, local.rollAt)),
    expire(slot, now) {
      if (local.expire(slot, now)) released(slot, now)
    },
    visit(slot, key, now, _batch, leaving) {
      // Walks may come a little early.
      if (leaving || now - key.sentAt < (0.9 * store.lifetime) / RENEWALS) return false
      if (key.emptyUntil > Number.NEGATIVE_INFINITY) site.freed(slot)
      key.measured()
      return key.hold > 0 || key.running > 0
    },
    isIdle(slot, key, now) {
      if (local.usedOf(slot) > 0) return false
      if (key === undefined) return true
      // No request came for it lately either.
      if (key.waiting.first !== undefined || now < key.emptyUntil + WAITED_FOR) return false
      return now >= key.current.until || (key.hold === 0 && !key.unsaid && !key.report)
    },
    mayForget: (slot, key) => local.usedOf(slot) === 0 && key?.waiting.first === undefined,
    forgotten: (slot) => local.forgotten(slot),

    ahead: (key, _lease, waiting) => key.ahead(waiting, meter.nodes),
    early: () => 0,
    /** A reply for a lease that this process has given up is useless. */
    answered: (_slot, key, lease) => lease === key.current,
    ranOut(key, _cost, _limit, now) {
      key.emptyUntil = now + EMPTY
    },
    announced(slot, key, { free, tail }, now) {
      if (free < 1) return
      mayHaveRoom(slot, key, now)
      if (meter.nodes > site.limitOf(slot)) drawLots(slot, key, now)
      else if (!hasPart(slot, key, 1)) key.recallUntil = Number.NEGATIVE_INFINITY
      else if (tail && now >= key.recallUntil) key.letOthers(now)
    },
  }
}
