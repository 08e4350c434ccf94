import type { Meter } from '../algorithms/meter.ts'
import type { SharedCoordination, SharedShape } from '../algorithms/shape.ts'
import type { MeterExchange, SharedSite } from '../algorithms/site.ts'
import type { CentralAlgorithm, Exchanging, StandingIn, StoreExchange } from '../counting/site.ts'
import { countsAtStore, isDecidedByStore } from '../decide/coordination.ts'
import { Limiter, type LimiterEvents } from '../decide/limiter.ts'
import { goesOnLocally, type Policy } from '../decide/policy.ts'
import { WeirError } from '../report/errors.ts'
import type { Emitter } from '../report/events.ts'
import { moveBlocks } from './move-blocks.ts'
import type { ThrottlerSettings } from './options.ts'

/** Intervals for which the store may have counts of a removed policy. */
export const KEPT_INTERVALS = 3
/**
 * Removed limiters that are kept at most, however long their intervals are. Together they keep at most as many keys as one policy may have.
 */
const MOST_RETIRED = 1_000

/** The sync as meters see it: of meters that count in this process alone, and of meters whose counts are synced. */
export interface Exchanges {
  readonly local: MeterExchange
  readonly shared: StoreExchange | undefined
}

/** Receives the events of keys. */
export interface LimiterSetHost {
  readonly emitter: Emitter
  readonly closed: boolean
  warn(error: WeirError, subject: string): void
  /** A policy's key may have capacity again. */
  freed(policy: Policy, key: string): void
}

/** A limiter that an update has removed, and when. */
interface Retired {
  readonly limiter: Limiter
  readonly at: number
}

/** The limiters of a throttler, one for each policy. An update keeps those whose policy stays. */
export class LimiterSet {
  /** In the order of the policies. */
  all: readonly Limiter[] = []
  /** The meters whose counts are synced, and the meters that count for this process alone. */
  exchanging: readonly Exchanging[] = []
  alone: readonly Meter[] = []
  /**
   * Limiters that an update has removed and whose counts a store may have. A policy that comes back soon must continue with its own counts,
   * because they only grow. Oldest first.
   */
  #retired: readonly Retired[] = []
  /** Limiters whose meter is still being loaded. */
  readonly #waiting = new Set<Limiter>()
  readonly #settings: ThrottlerSettings
  readonly #host: LimiterSetHost
  readonly #exchanges: Exchanges
  readonly #events: LimiterEvents

  constructor(settings: ThrottlerSettings, host: LimiterSetHost, exchanges: Exchanges) {
    const { emitter } = host
    this.#settings = settings
    this.#host = host
    this.#exchanges = exchanges
    this.#events = {
      blocked: ({ policy }, key, forMs, cause) => {
        if (emitter.has('blocked')) emitter.emit('blocked', { policy: policy.name, key, durationMs: forMs, cause })
      },
      unblocked: ({ policy }, key, cause) => {
        if (emitter.has('unblocked')) emitter.emit('unblocked', { policy: policy.name, key, cause })
      },
      overflow: ({ policy, maxKeys }) => {
        if (emitter.has('overflow')) emitter.emit('overflow', { policy: policy.name, maxKeys })
      },
      expired: ({ policy }, key, units) => {
        const why = policy.algorithm.slots?.expired(policy.name) ?? ''
        host.warn(new WeirError('WEIR_WARN_SLOT_EXPIRED', why), policy.name)
        if (emitter.has('slotExpired')) emitter.emit('slotExpired', { policy: policy.name, key, units })
      },
      freed: ({ policy }, key) => host.freed(policy, key),
    }
  }

  /**
   * The limiters of policies, in their order: existing and new ones. Changes nothing, because algorithms may throw.
   *
   * @param running whether the throttler has started
   */
  prepare(policies: readonly Policy[], now: number, running: boolean): readonly Limiter[] {
    const known = [...this.all, ...this.#kept(now).map(({ limiter }) => limiter)]
    return policies.map((policy) => {
      const kept = known.find((limiter) => limiter.policy.id === policy.id)
      if (kept !== undefined) return kept
      const made = this.#make(policy)
      if (running) made.meter.roll(now)
      return made
    })
  }

  /** @param all the limiters that `prepare` has returned for the policies, at the same moment */
  adopt(all: readonly Limiter[], policies: readonly Policy[], now: number, running: boolean): void {
    const before = this.all
    const retired = this.#kept(now)
    for (const [place, limiter] of all.entries()) {
      const policy = policies[place] as Policy
      if (limiter.policy === policy) continue
      limiter.adopt(policy, now)
      // An idle throttler starts at its first decision, which it recognises by a `rollAt` in the past.
      if (!running) limiter.meter.rollAt = Number.NEGATIVE_INFINITY
    }
    const gone = before.filter((limiter) => !all.includes(limiter))
    for (const limiter of gone) {
      const next = all.find(({ policy }) => policy.name === limiter.policy.name)
      if (next !== undefined && limiter.blocks.size > 0) moveBlocks(limiter, next, now)
    }
    const old = retired.filter(({ limiter }) => !all.includes(limiter))
    this.#retired = this.#latest([...old, ...gone.filter(isExchanged).map((limiter) => ({ limiter, at: now }))])
    this.all = all
    this.#sort()
  }

  /** Removed limiters, as long as the store may have their counts. */
  #kept(now: number): readonly Retired[] {
    return this.#retired.filter(({ limiter, at }) => now - at < KEPT_INTERVALS * limiter.policy.interval)
  }

  /** The last removed ones, as many as are kept: updates to ever new policies must not fill the memory. */
  #latest(retired: readonly Retired[]): readonly Retired[] {
    let keys = 0
    const first = retired.findLastIndex(({ limiter }) => (keys += limiter.table.size) > this.#settings.maxKeys)
    return retired.slice(first + 1).slice(-MOST_RETIRED)
  }

  #sort(): void {
    const shared = this.all.filter((limiter) => isExchanged(limiter) && !this.#waiting.has(limiter))
    this.exchanging = shared.map(({ meter }) => meter as Exchanging)
    this.alone = this.all.filter((limiter) => !shared.includes(limiter)).map(({ meter }) => meter)
  }

  /** Whether a limiter is used, or may be again. */
  #keeps(limiter: Limiter): boolean {
    return !this.#host.closed && (this.all.includes(limiter) || this.#retired.some((retired) => retired.limiter === limiter))
  }

  #make(policy: Policy): Limiter {
    const { algorithm, coordination } = policy
    const { local, shared } = this.#exchanges
    let loaded = true
    const make = (site: SharedSite): Meter => {
      if (!countsAtStore(policy)) return (algorithm.local as NonNullable<typeof algorithm.local>)(site, local)
      const exchange = shared as StoreExchange
      const form = isDecidedByStore(policy)
        ? exchange.central(algorithm as CentralAlgorithm)
        : exchange.form(algorithm.shape as SharedShape, coordination as SharedCoordination)
      const made = form(site, exchange)
      if (typeof made !== 'function') return made
      loaded = false
      const self = this
      return exchange.meanwhile(algorithm as StandingIn, site, made, goesOnLocally(policy), {
        get wanted() {
          return self.#keeps(limiter)
        },
        become: (meter) => {
          limiter.meter = meter
          this.#waiting.delete(limiter)
          this.#sort()
        },
      })
    }
    const { maxKeys, overflow } = this.#settings
    const limiter: Limiter = new Limiter(policy, make, this.#events, maxKeys, overflow)
    if (!loaded) this.#waiting.add(limiter)
    if (countsAtStore(policy) && shared?.time.measured === false) limiter.expect(this.#settings.expectedProcesses)
    return limiter
  }
}

/** Whether a store may have its counts. */
function isExchanged({ policy }: Limiter): boolean {
  return countsAtStore(policy)
}
