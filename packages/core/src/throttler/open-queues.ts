import type { Exchanging } from '../counting/site.ts'
import { isDecidedByStore, isSyncedBySpans, isSyncedEarly } from '../decide/coordination.ts'
import { type Decision, PolicyDecision } from '../decide/decision.ts'
import { combined } from '../decide/levels.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Outcome } from '../decide/outcome.ts'
import type { RequestPath } from '../decide/request-path.ts'
import { Asked } from '../queue/asked.ts'
import type { Gate } from '../queue/gate.ts'
import { counterId } from '../queue/line.ts'
import { Queues } from '../queue/queues.ts'
import type { QueueSettings } from '../queue/settings.ts'
import type { WeirError } from '../report/errors.ts'
import type { Emitter } from '../report/events.ts'
import type { Requests } from '../report/requests.ts'
import type { Clock } from '../time/clock.ts'
import type { Ordinal } from '../time/intervals.ts'
import { type AskedPart, asked, costAt, type DecidingHost, decideParts } from './asked-parts.ts'
import { soonest } from './soonest.ts'
import { passingOf, together } from './together.ts'
import { hasRoom, isLeased, paced, pacerOf, togetherAtLevels } from './together-at-levels.ts'

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

/** Requests that are late go immediately, up to this part of an interval. */
const SLACK_PART = 1 / 10

/** The members of the throttler that waiting requests need. */
export interface AcquireHost extends DecidingHost {
  readonly clock: Clock
  readonly random: () => number
  readonly emitter: Emitter
  readonly requests: Requests
  /** Whether the store is down. */
  readonly storeDown: boolean
  readonly path: DecidingHost['path'] & Pick<RequestPath<string>, 'waits' | 'limitEach' | 'peek' | 'look' | 'take' | 'placed' | 'keysOf'>
  warn(error: WeirError, subject: string): void
  /** Rolls a limiter to the running interval. */
  roll(limiter: Limiter, now: number): void
  /** Returns the units and slots of a request that was not allowed in the end. */
  giveBack(decision: Pick<Decision, 'parts'>, units?: number): void
}

/** Makes the queues of a throttler. This file is loaded with the first waiting request. */
export function openQueues(host: AcquireHost, settings: QueueSettings): Queues<Decision> {
  const queues = new Queues<Decision>(gateOf(host), settings)
  for (const event of ['unblocked', 'slotExpired'] as const)
    host.emitter.on(event, ({ policy: name, key }) => queues.nudge([{ policy: { name }, key }]))
  return queues
}

/** The queue's view of the throttler. */
function gateOf(host: AcquireHost): Gate<Decision> {
  const { path } = host
  /** Decisions that contain only the policy that reserves ahead. The other policies have not decided yet. */
  const partial = new WeakSet<Decision>()
  return {
    clock: host.clock,
    random: host.random,
    get waits() {
      return path.waits
    },
    askedBy: (key, cost, limit) => {
      const by = path.placed(cost)
      const limits = limit === undefined ? undefined : by.costs.map(() => limit)
      return Asked.of(host.limiters, { keys: path.keysOf(key), ...by, limits })
    },
    peek: (key, { cost, limit, asked }) => {
      const each = asked?.at(host.limiters)
      if (each === undefined) return path.peek(key, { cost, limit })
      return path.look(each.keys, each.costs, each.places, each.places.length, each.limits)
    },
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
    take: (key, { cost, limit, asked }) => {
      const each = asked?.at(host.limiters)
      if (each === undefined) return path.take(key, { cost, limit })
      return path.decideAsync(each.keys, each.costs, each.places, each.places.length, each.limits)
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
    refund: (decision) => host.giveBack(decision),
    rejection: (seen, retryAfterMs) => {
      if (!seen.allowed) return seen
      // With a pace the request fits, but not in time.
      const by = slowest(seen)
      const time = Math.max(1, Math.ceil(retryAfterMs ?? seen.delayMs))
      const parts = (seen.parts as readonly PolicyDecision[]).map((part) => {
        if (part !== by && seen.parts.length > 1) return part
        const outcome: Outcome = { ...part.outcome, allowed: false, reason: 'limit' }
        return new PolicyDecision(outcome, part.key, part.remaining, Math.max(time, part.resetAfterMs), time)
      })
      return parts.length === 0 ? seen : combined(parts)
    },
    ended: (allowed) => {
      if (allowed) host.requests.allowed++
      else host.requests.reasons.queue++
    },
    waited: (policy, key, time) => {
      if (host.emitter.has('waited')) host.emitter.emit('waited', { policy, key, durationMs: time })
    },
    pace: (decision) => {
      const part = slowest(decision)
      const interval = part.policy?.interval ?? 0
      const shared = host.limiters.find(({ policy }) => policy.id === part.policy?.id)?.meter.reservations?.leased === false
      return { counter: counterId(part), time: (part.cost * interval) / part.limit, slack: interval * SLACK_PART, shared }
    },
    went: (decision) => went(host, decision),
    blocks: ({ parts }) => {
      const now = host.clock.monotonic()
      return parts.some(({ policy, key }) => {
        const limiter = host.limiters.find((one) => one.policy.id === policy?.id)
        const slot = limiter?.table.find(key) ?? -1
        return slot >= 0 && limiter?.blocks.of(slot, now)?.manual === true
      })
    },
    giveBack: (decision, left) => {
      let sooner = 0
      const place = Math.floor(host.clock.monotonic() + left) as Ordinal
      for (const part of decision.parts as readonly PolicyDecision[]) {
        const { policy, cost, limit, delayMs: delay } = part
        const only = { parts: [part] }
        if (policy === undefined || delay === 0 || delay !== decision.delayMs) host.giveBack(only)
        else {
          const time = policy.interval / limit
          // The level to which it filled the bucket, less the units drained since.
          const undrained = passingOf(policy.algorithm, limit) + left / time
          const units = Math.min(cost, undrained)
          sooner = units * time
          const isShared = isDecidedByStore(policy) && part.ordinal > host.clock.monotonic()
          host.giveBack(isShared ? withPlace(part, place) : only, units)
        }
      }
      return sooner
    },
    soonest: (key, requests, units, wanted) => {
      const now = host.clock.monotonic()
      let longest = 0
      const parts = asked(host, key, wanted)
      const pacer = parts.length > 1 ? pacerOf(parts, now) : parts[0]
      for (const part of parts) {
        const { limiter, place, key: own, cost, limit } = part
        const each = wanted.asked !== undefined ? cost : costAt(host, place, undefined)
        const ofThem = units + requests * each
        longest = Math.max(longest, soonest(limiter, own, ofThem, limit, part === pacer, now))
      }
      return longest
    },
  }
}

/** The part of a decision for which it waits. */
function slowest(decision: Decision): Decision {
  return decision.parts.find(({ delayMs: delay }) => delay === decision.delayMs) ?? decision
}

/** A decision whose units are returned to another reservation. */
function withPlace(part: PolicyDecision, ordinal: Ordinal): Decision {
  return new PolicyDecision({ ...part.outcome, ordinal }, part.key, part.remaining, part.resetAfterMs, part.amount)
}

/** A decision after its delay: with the remaining units at that time, and without a delay. */
export function went({ clock, limiters }: AcquireHost, decision: Decision): Decision {
  const now = clock.monotonic()
  const parts = (decision.parts as readonly PolicyDecision[]).map((part) => {
    const limiter = limiters.find(({ policy }) => policy.id === part.policy?.id)
    const slot = limiter?.table.find(part.key) ?? -1
    const known = limiter !== undefined && slot >= 0
    const remaining = known ? limiter.meter.remaining(slot, now) : part.remaining
    const resetAfterMs = known ? Math.ceil(limiter.meter.resetAfterMs(slot, now)) : part.resetAfterMs
    return Object.defineProperty(new PolicyDecision(part.outcome, part.key, remaining, resetAfterMs, part.amount), 'delayMs', { value: 0 })
  })
  return combined(parts)
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
