import type { Exchanging } from '../algorithms/shared/site.ts'
import type { Decision, PolicyDecision } from '../decide/decision.ts'
import type { combined } from '../decide/levels.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { peekOne } from '../decide/peek.ts'
import type { PolicyOptions } from '../decide/policy.ts'
import type { CheckOptions } from '../decide/request-path.ts'
import type { Gate } from '../queue/gate.ts'
import { counterId } from '../queue/line.ts'
import type { Wanted } from '../queue/options.ts'
import { Queues } from '../queue/queues.ts'
import type { QueueSettings } from '../queue/settings.ts'
import type { Emitter } from '../report/events.ts'
import type { Clock } from '../time/clock.ts'

/** Milliseconds after which a node looks again whether the others have been heard. */
const PAUSE = 3

/** What requests that wait need of the throttler. */
export interface AcquireHost {
  readonly clock: Clock
  readonly emitter: Emitter
  readonly limiters: readonly Limiter[]
  /** Whether the store is away. */
  readonly degraded: boolean
  /** In the order of the limiters. */
  readonly rules: readonly PolicyOptions<never>[]
  readonly path: {
    readonly waits: boolean
    peek(key: string, options?: CheckOptions): Decision
    check(key: string, options?: CheckOptions): Decision
    checkAsync(key: string, options?: CheckOptions): Promise<Decision>
  }
  /** Handed over: what it imported would be in a file of its own, as this one is loaded later. */
  readonly peekOne: typeof peekOne
  readonly PolicyDecision: typeof PolicyDecision
  readonly combined: typeof combined
  refund(decision: Decision, units?: number): void
}

/** The requests of a throttler that wait for their turn; loaded with the first of them. */
export function openQueues(host: AcquireHost, settings: QueueSettings): Queues<Decision> {
  const queues = new Queues<Decision>(gateOf(host), settings)
  host.emitter.on('unblocked', ({ policy: name, key }) => queues.nudge([{ policy: { name }, key }]))
  return queues
}

function gateOf(host: AcquireHost): Gate<Decision> {
  const { path } = host
  return {
    clock: host.clock,
    get waits() {
      return path.waits
    },
    peek: (key, wanted) => path.peek(key, asked(wanted)),
    asks: (key, { cost = 1 }) => {
      const now = host.clock.monotonic()
      return host.limiters.every((limiter, place) => {
        const slot = limiter.locate(keyAt(host, place, key))
        if (slot < 0) return false
        return limiter.meter.reserving?.mustAsk(slot, cost, now) === true || limiter.meter.admits(slot, cost, now, false)
      })
    },
    pause: (key, { cost = 1 }) => {
      if (host.degraded) return 0
      const now = host.clock.monotonic()
      return host.limiters.some((limiter, place) => isAhead(limiter, keyAt(host, place, key), cost, now)) ? PAUSE : 0
    },
    take: (key, wanted) => (path.waits ? path.checkAsync(key, asked(wanted)) : path.check(key, asked(wanted))),
    refund: (decision) => host.refund(decision),
    paceMaker: (decision) => counterId(slowest(decision)),
    went: (decision) => {
      const now = host.clock.monotonic()
      return host.combined((decision.parts as readonly PolicyDecision[]).map((part) => went(host, part, now)))
    },
    giveBack: (decision, left) => {
      let sooner = 0
      for (const part of decision.parts) {
        const { policy, cost, limit, remaining, delay } = part
        const only = { ...decision, parts: [part] }
        if (policy === undefined || delay === 0 || delay !== decision.delay) host.refund(only)
        else {
          const time = policy.interval / limit
          // The level that it filled the bucket to, less what drained since.
          const undrained = (policy.algorithm.most?.(limit) ?? limit) - remaining - (delay - left) / time
          const units = Math.min(cost, undrained)
          sooner = units * time
          host.refund(only, units)
        }
      }
      return sooner
    },
    soonest: (key, requests, units, limit) => {
      const now = host.clock.monotonic()
      let longest = 0
      for (const [place, limiter] of host.limiters.entries()) {
        const { cost } = host.rules[place] as PolicyOptions<never>
        const all = units + requests * (typeof cost === 'number' ? cost : 1)
        longest = Math.max(longest, soonest(host, limiter, keyAt(host, place, key), all, limit, now))
      }
      return longest
    },
  }
}

/** The part of a decision that it waits for. */
function slowest(decision: Decision): Decision {
  return decision.parts.find(({ delay }) => delay === decision.delay) ?? decision
}

/** A policy's part of a decision after its delay: what is left now, and nothing to wait for any more. */
function went({ limiters, PolicyDecision }: AcquireHost, part: PolicyDecision, now: number): PolicyDecision {
  const limiter = limiters.find(({ policy }) => policy.id === part.policy?.id)
  const slot = limiter?.table.find(part.key) ?? -1
  const known = limiter !== undefined && slot >= 0
  const remaining = known ? limiter.meter.remaining(slot, now) : part.remaining
  const resetAfter = known ? Math.ceil(limiter.meter.resetAfter(slot, now)) : part.resetAfter
  return Object.defineProperty(new PolicyDecision(part.outcome, part.key, remaining, resetAfter, part.cost), 'delay', { value: 0 })
}

/** What a policy counts a key by. */
function keyAt({ rules }: AcquireHost, place: number, key: string): string {
  return rules[place]?.key === 'all' ? 'all' : key
}

/**
 * Whether the store should hear first of what this node has taken of a key: nodes whose requests wait would all take what comes free
 * at the same moment. As a key is exchanged early: by half of this node's part of what is left.
 */
function isAhead(limiter: Limiter, key: string, cost: number, now: number): boolean {
  const { meter, policy } = limiter
  const { syncing } = meter
  if (policy.coordination !== 'background' || syncing === undefined || syncing.nodes === 1) return false
  const slot = limiter.table.find(key)
  const unsynced = slot < 0 ? 0 : syncing.unsyncedOf(slot)
  if (unsynced === 0) return false
  const left = limiter.most(limiter.limitOf(slot)) - meter.usedOf(slot, now) + unsynced
  if (unsynced + cost <= left / (2 * syncing.nodes)) return false
  ;(meter as Exchanging).tellAll(limiter.idOf(slot), now)
  return true
}

function asked({ cost, limit }: Wanted): CheckOptions | undefined {
  if (limit !== undefined) return cost === undefined ? { limit } : { cost, limit }
  return cost === undefined ? undefined : { cost }
}

/**
 * Milliseconds until a policy has let so many units go at the soonest, a few at a time: what does not fit at once has to wait for
 * whole rounds, in each of which as much comes free as fits.
 */
function soonest({ peekOne }: AcquireHost, limiter: Limiter, key: string, units: number, limit: number | undefined, now: number): number {
  const { policy } = limiter
  if (policy.dryRun) return 0
  const own = limit ?? policy.limit
  if (own === Number.POSITIVE_INFINITY) return 0
  const most = limiter.most(own)
  if (!(most > 0)) return Number.POSITIVE_INFINITY
  const rounds = Math.ceil(units / most) - 1
  const round = (policy.interval * most) / own
  const rest = peekOne(limiter, key, units - rounds * most, limit, now)
  if (!rest.allowed) return rest.retryAfter + rounds * round
  if (rounds === 0) return 0
  const whole = peekOne(limiter, key, most, limit, now)
  return (whole.allowed ? 0 : whole.retryAfter) + (rounds - 1) * round
}
