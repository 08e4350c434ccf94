import { isDecidedByStore } from '../decide/coordination.ts'
import { type Decision, PolicyDecision } from '../decide/decision.ts'
import { combined } from '../decide/levels.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Outcome } from '../decide/outcome.ts'
import type { RequestPath } from '../decide/request-path.ts'
import { Asked } from '../queue/asked.ts'
import type { Asking } from '../queue/asking.ts'
import type { Gate } from '../queue/gate.ts'
import { counterId } from '../queue/line.ts'
import { Queues } from '../queue/queues.ts'
import type { QueueSettings } from '../queue/settings.ts'
import type { WeirError } from '../report/errors.ts'
import type { Emitter } from '../report/events.ts'
import type { Requests } from '../report/requests.ts'
import type { Clock } from '../time/clock.ts'
import type { Ordinal } from '../time/intervals.ts'
import { type AskedPart, asked, costAt, type DecidingHost } from './asked-parts.ts'
import { passingOf } from './bucket-delay.ts'
import { soonest } from './soonest.ts'

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

/** The part of the gate for requests that the store decides, or that other processes' requests affect. */
export interface GateAtStore
  extends Pick<Gate<Decision>, 'asks' | 'mayAskAgain' | 'pause' | 'turns' | 'reservesAhead' | 'together' | 'isPart' | 'takeRest' | 'join'> {
  /** The policy that reserves ahead for a request with these parts. */
  pacerOf(parts: readonly AskedPart[], now: number): AskedPart | undefined
}

/** The code that lets requests wait at a store. A store brings it, so that a throttler without one never loads it. */
export interface WaitingAtStore {
  readonly gateAtStore: (host: AcquireHost) => GateAtStore
  readonly Asking: typeof Asking
}

/** Only this process decides. */
const WITHOUT_STORE: GateAtStore = {
  asks: () => false,
  mayAskAgain: () => false,
  pause: () => undefined,
  turns: () => undefined,
  reservesAhead: () => false,
  together: () => undefined,
  isPart: () => false,
  takeRest: () => undefined,
  join: (part) => part,
  pacerOf: () => undefined,
}

/** Makes the queues of a throttler. This file is loaded with the first waiting request. */
export function openQueues(host: AcquireHost, settings: QueueSettings, atStore: WaitingAtStore | undefined): Queues<Decision> {
  const queues = new Queues<Decision>(gateOf(host, atStore?.gateAtStore(host) ?? WITHOUT_STORE), settings, atStore?.Asking)
  for (const event of ['unblocked', 'slotExpired'] as const)
    host.emitter.on(event, ({ policy: name, key }) => queues.nudge([{ policy: { name }, key }]))
  return queues
}

/** The queue's view of the throttler. */
function gateOf(host: AcquireHost, atStore: GateAtStore): Gate<Decision> {
  const { path } = host
  return {
    ...atStore,
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
    take: (key, { cost, limit, asked }) => {
      const each = asked?.at(host.limiters)
      if (each === undefined) return path.take(key, { cost, limit })
      return path.decideAsync(each.keys, each.costs, each.places, each.places.length, each.limits)
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
      const pacer = atStore.pacerOf(parts, now)
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
