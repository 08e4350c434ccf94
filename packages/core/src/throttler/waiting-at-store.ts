import type { Exchanging } from '../counting/site.ts'
import { isSyncedBySpans, isSyncedEarly } from '../decide/coordination.ts'
import type { Decision, PolicyDecision } from '../decide/decision.ts'
import { combined } from '../decide/levels.ts'
import { type AskedPart, asked, costAt, decideParts } from './asked-parts.ts'
import type { AcquireHost, GateAtStore } from './open-queues.ts'
import { together } from './together.ts'
import { hasRoom, isLeased, paced, pacerOf, togetherAtLevels } from './together-at-levels.ts'

export { Asking } from '../queue/asking.ts'

/** Milliseconds after which a process checks again whether the others' counts have arrived. */
const PAUSE = 3
/**
 * In an overload, the requests of an interval take turns within this part of an interval, and this many milliseconds at most. If the store
 * is far away, they take turns within this many round trips, up to the second part of an interval.
 */
const TURNS_PART = 1 / 5
const TURNS_MOST = 1_000
const TURNS_ROUND_TRIPS = 20
const TURNS_MOST_PART = 1 / 3

/** The queue's view of a throttler with a store, as far as it depends on the store. */
export function gateAtStore(host: AcquireHost): GateAtStore {
  const { path } = host
  /** Decisions that contain only the policy that reserves ahead. The other policies have not decided yet. */
  const partial = new WeakSet<Decision>()
  return {
    asks: (key, wanted) => {
      const now = host.clock.monotonic()
      return asked(host, key, wanted).every((part) => hasRoom(part, now))
    },
    mayAskAgain: (key, wanted) => {
      const now = host.clock.monotonic()
      const parts = asked(host, key, wanted)
      return (
        parts.some(({ limiter }) => isLeased(limiter)) &&
        parts.every(({ limiter, key, cost }) => {
          const slot = limiter.locate(key)
          if (slot < 0) return false
          const { meter } = limiter
          if (!isLeased(limiter)) return meter.allows(slot, cost, now, false)
          return meter.remaining(slot, now) >= cost && meter.reservations?.needsStore(slot, cost, now) === true
        })
      )
    },
    pause: (key, wanted, overload) => {
      if (host.storeDown) return undefined
      const now = host.clock.monotonic()
      for (const part of asked(host, key, wanted)) {
        const time = pauseOf(host, part, now, overload)
        if (time > 0) return { by: { policy: part.limiter.policy, key: part.key }, time }
      }
      return undefined
    },
    turns: (policy, closedFor) => {
      const limiter = host.limiters.find((one) => one.policy.name === policy)
      const syncing = limiter?.meter.syncing
      if (limiter === undefined || syncing === undefined || syncing.nodes === 1 || host.storeDown) return undefined
      const { algorithm, interval } = limiter.policy
      // With spans, processes get each other's counts too late. Limits that drain evenly have no moment that all wait for.
      if (isSyncedBySpans(limiter.policy) || algorithm.most !== undefined) return undefined
      const most = interval * TURNS_MOST_PART
      const during = Math.max(Math.min(interval * TURNS_PART, TURNS_MOST), Math.min(most, TURNS_ROUND_TRIPS * syncing.roundTrip))
      // A limit that opens before the others' counts could arrive is no overload, and the end of a request in flight can't be predicted.
      if (closedFor <= Math.min(during, TURNS_ROUND_TRIPS * syncing.roundTrip) || closedFor === Number.POSITIVE_INFINITY) return undefined
      return { speed: interval / during, most }
    },
    reservesAhead: (policy) => {
      const limiter = host.limiters.find((one) => one.policy.name === policy)
      return limiter?.meter.reservations?.leased === false && !limiter.policy.dryRun
    },
    together: (key, wanted) => {
      const parts = asked(host, key, wanted)
      if (!parts.some(({ limiter }) => limiter.meter.reservations?.leased === false)) return undefined
      const each = wanted.asked?.at(host.limiters)
      if (each === undefined) path.limitKey(key, wanted.limit)
      else path.limitEach(each.keys, each.limits)
      const now = host.clock.monotonic()
      const part = parts.length > 1 ? pacerOf(parts, now) : parts[0]
      if (part === undefined) return togetherAtLevels(host.clock, parts, key, wanted, (many) => decideParts(host, key, wanted, parts, many))
      const one = together(host.clock, part, costAt(host, part.place, undefined), wanted, (key, beside) => {
        const theirs = asked(host, key, beside)
        if (theirs.length > 1 !== parts.length > 1) return undefined
        const own = theirs.length > 1 ? pacerOf(theirs, host.clock.monotonic()) : theirs[0]
        return own?.limiter === part.limiter && own.key === part.key && own.limit === part.limit ? own.cost : undefined
      })
      return parts.length > 1 && one !== undefined ? paced(host.clock, one, parts, part, (decision) => partial.add(decision)) : one
    },
    isPart: (decision) => partial.has(decision),
    takeRest: (key, wanted, part) => {
      const rest = asked(host, key, wanted).filter(({ limiter }) => limiter.policy.name !== part.policy?.name)
      return rest.length === 0 ? undefined : decideParts(host, key, wanted, rest)
    },
    join: (part, rest) => {
      const order = (one: Decision) => host.limiters.findIndex(({ policy }) => policy.name === one.policy?.name)
      return combined(([...part.parts, ...rest.parts] as PolicyDecision[]).sort((a, b) => order(a) - order(b)))
    },
    pacerOf: (parts, now) => (parts.length > 1 ? pacerOf(parts, now) : parts[0]),
  }
}

/**
 * Milliseconds for which a request should wait until the store has its reservation, or the units of its key that this process has used.
 * Without the wait, the waiting requests of all processes would use freed units at the same moment. The threshold is the one for an early
 * sync: half of this process's part of the remaining units. In an overload, a request that costs more than that part is allowed by chance.
 * Otherwise each process would allow one too many at the end.
 */
function pauseOf(host: AcquireHost, { limiter, key, cost }: AskedPart, now: number, overload: boolean): number {
  const { meter, policy } = limiter
  const { syncing } = meter
  if (!isSyncedEarly(policy) || syncing === undefined || syncing.nodes === 1) return 0
  const slot = limiter.table.find(key)
  if (slot < 0) return 0
  const asks = meter.reservations?.needsStore(slot, cost, now) === true
  const unsynced = syncing.unsyncedOf(slot)
  if (unsynced === 0 && !asks && !overload) return 0
  const left = limiter.most(limiter.limitOf(slot)) - meter.usedOf(slot, now) + unsynced
  const part = (left * syncing.shareOf(slot)) / 2
  if (unsynced + cost <= part) return 0
  if (unsynced === 0 && !asks) return host.random() * cost < part ? 0 : PAUSE + syncing.roundTrip
  // The sync that requests a reservation also reports the counts.
  if (!asks) (meter as Exchanging).counts?.syncKey(limiter.idOf(slot), now)
  return PAUSE
}
