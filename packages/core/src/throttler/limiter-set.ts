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

/** So long, in intervals, the store may have counts of a policy that was taken out. */
export const KEPT_INTERVALS = 3
/** So many of these are kept at most, however long their intervals are, and as many keys of them all together as one policy may have. */
const MOST_RETIRED = 1_000

/** What meters see of other nodes: those that count in this process, and those whose counts travel. */
export interface Exchanges {
  readonly local: MeterExchange
  readonly shared: StoreExchange | undefined
}

/** Who hears what happens to keys. */
export interface LimiterSetHost {
  readonly emitter: Emitter
  readonly closed: boolean
  warn(error: WeirError, subject: string): void
  /** There may be room again for a policy's key. */
  freed(policy: Policy, key: string): void
}

/** One that an update has taken out, and when. */
interface Retired {
  readonly limiter: Limiter
  readonly at: number
}

/** The limiters of a throttler, one for each policy. An update keeps those whose policy stays. */
export class LimiterSet {
  /** In the order of the policies. */
  all: readonly Limiter[] = []
  /** The meters whose counts are exchanged, and those that count for this process alone. */
  exchanging: readonly Exchanging[] = []
  alone: readonly Meter[] = []
  /**
   * Those that an update has taken out and of which a store may have counts: one that comes back soon must go on with its own, which
   * only grow. Oldest first.
   */
  #retired: readonly Retired[] = []
  /** Those whose meter is still being loaded. */
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
   * The limiters of policies, in their order: those that are there, and new ones. Changes nothing: algorithms may throw.
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

  /** @param all as `prepare` has made them of the policies, at the same moment */
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

  /** Those that were taken out, as long as the store may have their counts. */
  #kept(now: number): readonly Retired[] {
    return this.#retired.filter(({ limiter, at }) => now - at < KEPT_INTERVALS * limiter.policy.interval)
  }

  /** Those of them that were taken out last, as many as are kept: updates to ever new policies must not fill the memory. */
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

/** Whether a store may have counts of it. */
function isExchanged({ policy }: Limiter): boolean {
  return countsAtStore(policy)
}
