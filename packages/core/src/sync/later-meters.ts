import type { Meter } from '../algorithms/meter.ts'
import type { Exchange, Exchanging, MakeShared, SharedSite, StandingIn, StoreExchange } from '../algorithms/shared/site.ts'
import { WeirError } from '../report/errors.ts'
import type { Clock } from '../time/clock.ts'

/** What a meter that stands in was told to tell the other nodes. Times are of the monotonic clock. */
interface Untold {
  /** Blocks by key as the store gets it, the last of each. */
  readonly blocks: Map<string, { readonly kind: 'exceeded' | 'set' | 'lift'; readonly until: number }>
  /** When keys were reset. */
  readonly resets: Map<string, number>
}

/** The meters of one node that are being loaded, and what counts in their place: the algorithms' own local meters. */
export class LaterMeters {
  readonly #clock: Clock
  readonly #exchange: () => StoreExchange
  readonly #warn: (error: WeirError) => void
  readonly #welcome: () => void
  readonly #loading = new Set<Promise<void>>()

  /** @param welcome asks the store for all blocks again, as a new meter knows of none */
  constructor(clock: Clock, exchange: () => StoreExchange, warn: (error: WeirError) => void, welcome: () => void) {
    this.#clock = clock
    this.#exchange = exchange
    this.#warn = warn
    this.#welcome = welcome
  }

  /** While meters are being loaded. */
  get loading(): Promise<unknown> | undefined {
    return this.#loading.size === 0 ? undefined : Promise.all(this.#loading)
  }

  /** As `StoreExchange.meanwhile`. */
  meanwhile(
    algorithm: StandingIn,
    site: SharedSite,
    loading: Promise<MakeShared>,
    goesOn: boolean,
    become: (meter: Exchanging) => void,
  ): Meter {
    const { time } = this.#exchange()
    const untold: Untold = { blocks: new Map(), resets: new Map() }
    site.table.restride(algorithm.fields)
    const before = algorithm.local(site, Object.create(this.#exchange(), { localTime: { value: time } }) as Exchange)
    before.tellBlock = (id, kind, _remaining, until) => untold.blocks.set(id, { kind, until })
    before.tellReset = (id, known, now) => {
      untold.resets.set(id, now)
      return Math.max(known + 1, Math.floor(time.at(now)))
    }
    const loaded = loading
      .then((make) => this.#replace(before, make, site, untold, goesOn, become))
      .catch((cause: unknown) => {
        const what = `The code that exchanges the counts of the policy "${site.policy.name}" could not be loaded`
        this.#warn(new WeirError('WEIR_NOT_LOADED', `${what}; this process counts it alone. ${String(cause)}`, { cause }))
      })
      .finally(() => this.#loading.delete(loaded))
    this.#loading.add(loaded)
    return before
  }

  #replace(
    before: Meter,
    make: MakeShared,
    site: SharedSite,
    { blocks, resets }: Untold,
    goesOn: boolean,
    become: (meter: Exchanging) => void,
  ): void {
    const now = this.#clock.monotonic()
    const counts = goesOn ? [] : takeOut(before, site, now)
    const made = make(site, this.#exchange(), before)
    become(made)
    // Nothing has happened before the throttler's start, or anything more after its end.
    if (before.rollAt === Number.NEGATIVE_INFINITY) return
    if (this.#exchange().time.measured) made.adoptTime(now)
    else made.roll(now)
    for (const [id, at] of resets) site.reset(id, made.tellReset?.(id, site.resetAt(id) - 1, at) ?? 0, now, 'remote')
    for (const [id, { kind, until }] of blocks) {
      if (until > now || kind === 'lift') made.tellBlock?.(id, kind, Math.max(0, until - now), until)
    }
    for (const [slot, units] of counts) {
      // As a charge: the record is brought to the running interval first.
      made.admits(slot, units, now)
      made.add(slot, units, now)
    }
    this.#welcome()
  }
}

/** Units that each key has used; its record is cleared, and laid out as meters have it whose counts are exchanged. */
function takeOut(before: Meter, { table }: SharedSite, now: number): (readonly [slot: number, units: number])[] {
  const counts: (readonly [slot: number, units: number])[] = []
  for (let slot = 0; slot < table.end && before.admitted > 0; slot++) {
    const units = table.keys[slot] === undefined ? 0 : before.ownOf(slot, now)
    if (units > 0) counts.push([slot, units])
  }
  table.restride()
  return counts
}
