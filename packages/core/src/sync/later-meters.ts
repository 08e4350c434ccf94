import type { Meter } from '../algorithms/meter.ts'
import type { SharedSite } from '../algorithms/site.ts'
import type { Exchange, Exchanging, LoadShared, MakeShared, StandingIn, StoreExchange, Successor } from '../counting/site.ts'
import { WeirError } from '../report/errors.ts'
import { reasonOf, show } from '../report/show.ts'
import type { Clock } from '../time/clock.ts'
import { Retried } from '../time/retried.ts'
import { BlockChanges } from './exchange/block-changes.ts'

/** Messages for other processes that a stand-in meter could not send. */
interface Untold {
  readonly blocks: BlockChanges
  /** When keys were reset, on the monotonic clock: the newest last. */
  readonly resets: Map<string, number>
}

/** The most resets that are kept while code can't be loaded. The oldest is dropped. */
export const MOST_RESETS = 10_000

/** The meters of one process that are being loaded. The algorithms' own local meters count in their place. */
export class LaterMeters {
  readonly #clock: Clock
  readonly #exchange: () => StoreExchange
  readonly #warn: (error: WeirError) => void
  readonly #welcome: () => void
  /** First attempts. No request waits for later ones. */
  readonly #loading = new Map<Promise<unknown>, { readonly site: SharedSite; readonly standIn: () => void }>()

  /** @param welcome requests all blocks from the store again, because a new meter has none */
  constructor(clock: Clock, exchange: () => StoreExchange, warn: (error: WeirError) => void, welcome: () => void) {
    this.#clock = clock
    this.#exchange = exchange
    this.#warn = warn
    this.#welcome = welcome
  }

  /** While meters are being loaded for the first time. */
  get loading(): Promise<unknown> | undefined {
    return this.#loading.size === 0 ? undefined : Promise.all(this.#loading.keys())
  }

  /** Makes `failMode` decide until the meters are loaded, because a request has waited for one of them as long as it may. */
  overdue(sites: readonly object[]): void {
    for (const { site, standIn } of this.#loading.values()) if (sites.includes(site)) standIn()
  }

  /** As `StoreExchange.meanwhile`. */
  meanwhile(algorithm: StandingIn, site: SharedSite, load: LoadShared, goesOn: boolean, successor: Successor): Meter {
    const { time } = this.#exchange()
    const untold: Untold = { blocks: new BlockChanges(), resets: new Map() }
    const { blocks, resets } = untold
    site.table.restride(algorithm.fields)
    const before = algorithm.local(site, Object.create(this.#exchange(), { localTime: { value: time } }) as Exchange)
    before.syncedBlocks = {
      report: (key, kind, remaining, until) => {
        blocks.add({ change: { policy: site.policy as never, key, kind, remaining }, until })
        blocks.limit(this.#clock.monotonic())
      },
      reportReset: (key, known, now) => {
        resets.delete(key)
        resets.set(key, now)
        if (resets.size > MOST_RESETS) resets.delete(resets.keys().next().value as string)
        return Math.max(known + 1, Math.floor(time.at(now)))
      },
    }
    let stands = false
    const standIn = (): void => {
      if (!stands) this.#standIn(before, site)
      stands = true
    }
    const later = new Retried(
      async () => {
        const make = await load()
        this.#replace(before, make, site, untold, goesOn, successor)
        return make
      },
      this.#clock,
      (cause, isFirst) => {
        if (!successor.wanted) later.stop()
        if (!isFirst) return
        standIn()
        this.#notLoaded(site, cause)
      },
    )
    const first = later.load().finally(() => this.#loading.delete(first))
    this.#loading.set(first, { site, standIn })
    return before
  }

  /**
   * Makes the local meter decide by `failMode`, because the counts of other processes are missing. It still counts units for the meter to
   * come.
   */
  #standIn(before: Meter, site: SharedSite): void {
    site.divideLimits(() => this.#partsOf(site))
    const explain = before.explain.bind(before)
    before.explain = (slot, cost, now) => {
      const why = explain(slot, cost, now)
      if (why.reason !== 'limit') return why
      return {
        reason: 'storeDown',
        retryAfterMs: why.retryAfterMs < Number.POSITIVE_INFINITY ? why.retryAfterMs : Math.max(1, before.rollAt - now),
      }
    }
    // Starts no cooldown, because other processes may not have used their shares.
    before.reject = before.explain
  }

  #partsOf({ policy }: SharedSite): number {
    if (policy.failMode === 'open') return 0
    return policy.failMode === 'closed' ? Number.POSITIVE_INFINITY : this.#exchange().nodes
  }

  #notLoaded({ policy }: SharedSite, cause: unknown): void {
    const what = `Code of policy ${show(policy.name)} could not be loaded (${reasonOf(cause)})`
    const then = `Weir tries again. Until it succeeds, the policy uses its "failMode", ${show(policy.failMode)}. Check that the files of the package are readable.`
    this.#warn(new WeirError('WEIR_NOT_LOADED', `${what}. ${then}`, { cause }))
  }

  #replace(before: Meter, make: MakeShared, site: SharedSite, { blocks, resets }: Untold, goesOn: boolean, { become }: Successor): void {
    const now = this.#clock.monotonic()
    const stood = Object.hasOwn(before, 'reject')
    const { fields, stride } = site.table
    // The units of a warm-up depend on the limit by which they were counted, so they are taken out before the limit changes.
    const handed = before.handed && takeOut(before, site, now)
    site.divideLimits(undefined)
    if (this.#exchange().time.measured) site.expect(1)
    for (const own of ['explain', 'reject']) Reflect.deleteProperty(before, own)
    const counts = handed ?? takeOut(before, site, now)
    let made: Exchanging
    try {
      if (!goesOn) site.table.restride()
      made = make(site, this.#exchange(), before)
    } catch (error) {
      // The local meter keeps standing in, with its counts.
      Object.assign(site.table, { fields, stride })
      if (stood) this.#standIn(before, site)
      throw error
    }
    become(made)
    // Before the throttler's start and after its end there is nothing to take over.
    if (before.rollAt === Number.NEGATIVE_INFINITY) return
    if (this.#exchange().time.measured) made.adoptTime(now)
    else made.roll(now)
    for (const [id, at] of resets) site.reset(id, made.syncedBlocks.reportReset(id, site.resetAt(id) - 1, at), now, 'remote')
    for (const { change, until } of blocks.take(now, Number.POSITIVE_INFINITY)) {
      made.syncedBlocks.report(change.key, change.kind as ReportedKind, until - now, until)
    }
    for (const [slot, units] of counts) {
      if (goesOn) {
        made.owe?.(slot, units, now)
        continue
      }
      // Counts like a charge: the record moves to the running interval first.
      const fits = made.allows(slot, units, now)
      made.add(slot, units, now)
      if (!fits) made.exceeded?.(slot, now)
    }
    this.#welcome()
  }
}

/** Kinds of changes that a stand-in meter collects. */
type ReportedKind = 'exceeded' | 'set' | 'lift'

/** Units that each key has used, those beyond its limit included. */
function takeOut(before: Meter, { table }: SharedSite, now: number): (readonly [slot: number, units: number])[] {
  const counts: (readonly [slot: number, units: number])[] = []
  for (let slot = 0; slot < table.end && before.allowed > 0; slot++) {
    const units =
      table.keys[slot] === undefined ? 0 : (before.handed?.(slot, now) ?? before.ownOf(slot, now) + (before.over?.(slot, now) ?? 0))
    if (units > 0) counts.push([slot, units])
  }
  return counts
}
