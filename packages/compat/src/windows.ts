import { createThrottler, type Decision, type PolicyOptions, type Store, type Throttler, WeirError } from '@weir/core'
import { type AdapterSide, adapterOf, idOfKey, invalidOption, missingOption, NO_POLICIES_YET } from '@weir/core/adapter'

/** One limit of another library: a policy of the throttler that all limits of a store share. */
export class Window {
  readonly policy: PolicyOptions & { readonly name: string; readonly limit: number }
  readonly #windows: Windows
  /** In the order of the throttler's policies. Only this window's entry is set. */
  #keys: (string | undefined)[] = []
  #limits: (number | undefined)[] = []
  #costs: number[] = []
  #place = 0
  #applying: readonly number[] = [0]

  constructor(policy: Window['policy'], windows: Windows) {
    this.policy = policy
    this.#windows = windows
  }

  /** The window's policy is at this place now. */
  moveTo(place: number): void {
    this.#keys = Array(place + 1).fill(undefined)
    this.#limits = Array(place + 1).fill(undefined)
    this.#costs = Array(place + 1).fill(1)
    this.#place = place
    this.#applying = [place]
  }

  /** Counts a request, if the limit allows it. */
  hit(key: string, limit: number): Decision {
    const side = this.#windows.current()
    // Keys come from functions of the application, in JavaScript of any type.
    this.#keys[this.#place] = `${key}`
    return side.decide(this.#keys, this.#costs, this.#applying, 1, limit === this.policy.limit ? undefined : this.#limitsOf(limit))
  }

  /** The decision on the next request. Nothing is counted. */
  peek(key: string, limit: number): Decision {
    const side = this.#windows.current()
    this.#keys[this.#place] = `${key}`
    return side.peekEach(this.#keys, this.#costs, this.#applying, limit === this.policy.limit ? undefined : this.#limitsOf(limit))
  }

  /** The time of the last reset of a counted key, by any process, or 0. */
  resetAt(key: string): number {
    const { limiters } = this.#windows.current().inspected
    return limiters[this.#place]?.resetAt(idOfKey(key)) ?? 0
  }

  #limitsOf(limit: number): readonly (number | undefined)[] {
    this.#limits[this.#place] = limit
    return this.#limits
  }
}

/** All limits of a store's value, counted by one throttler. */
export class Windows {
  static readonly #at = new WeakMap<Store, Windows>()
  readonly throttler: Throttler
  readonly #side: AdapterSide
  readonly #byName = new Map<string, Window>()
  #version = -1
  /** The window of the last request with a limit of its own. */
  #last:
    | { readonly name: string; readonly limit: number; readonly interval: number; readonly cooldown: number; readonly window: Window }
    | undefined

  private constructor(store: Store) {
    this.throttler = createThrottler({ policies: NO_POLICIES_YET, store })
    this.#side = adapterOf(this.throttler)
  }

  /**
   * The limits of a store's value, new ones after their throttler was closed.
   *
   * @throws WeirError `WEIR_MISSING_OPTION`, `WEIR_INVALID_OPTION`
   */
  static at(store: Store): Windows {
    if (store === undefined) throw missingOption('store', 'Pass one, e.g. redisStore("redis://localhost:6379").')
    let windows = Windows.#at.get(store)
    if (windows === undefined || windows.throttler.state === 'closed') {
      windows = new Windows(store)
      Windows.#at.set(store, windows)
    }
    return windows
  }

  /**
   * The window with this name, which is added if needed.
   *
   * @throws WeirError as `createThrottler`. Then nothing has changed
   */
  open(name: string, limit: number, interval: number, cooldown = 0): Window {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const window = new Window({ name, limit: Math.max(1, limit), interval, cooldown }, this)
    this.throttler.update([...this.#side.rules, window.policy])
    this.#byName.set(name, window)
    return window
  }

  /**
   * The window of a limit that comes with each request. Each limit has its own, because counts of a key are exact for the policy's limit,
   * and not for a much smaller one. With more than `MOST` windows, further ones have any limit, and times are rounded up to powers of two.
   */
  ofRequest(name: string, limit: number, interval: number, cooldown = 0): Window {
    const last = this.#last
    // Most applications have one limit, and its name takes as long as a decision.
    if (last?.name === name && last.limit === limit && last.interval === interval && last.cooldown === cooldown) return last.window
    const window = this.#named(name, limit, interval, cooldown)
    this.#last = { name, limit, interval, cooldown, window }
    return window
  }

  #named(name: string, limit: number, interval: number, cooldown: number): Window {
    const text = `${name}:${limit}/${timesText(interval, cooldown)}`
    if (this.#byName.size < MOST || this.#byName.has(text)) return this.open(text, limit, interval, cooldown)
    const what = `Requests have more than ${MOST} different limits or windows. Further ones are less exact. Use fewer.`
    this.#side.warn(new WeirError('WEIR_INVALID_OPTION', what), 'windows')
    const [rounded, block] = [roundedUp(interval), cooldown > 0 ? roundedUp(cooldown) : 0]
    return this.open(`${name}:${timesText(rounded, block)}`, limit, rounded, block)
  }

  /** The throttler, with each window at its place: the application may have changed the policies. */
  current(): AdapterSide {
    const side = this.#side
    if (side.version === this.#version) return side
    const names = side.policies.map(({ name }) => name)
    const missing = [...this.#byName.values()].filter(({ policy }) => !names.includes(policy.name))
    if (missing.length > 0) this.throttler.update([...side.rules, ...missing.map(({ policy }) => policy)])
    for (const [place, { name }] of side.policies.entries()) this.#byName.get(name)?.moveTo(place)
    this.#version = side.version
    return side
  }
}

const MOST = 100

/** A power of two of milliseconds. */
function roundedUp(ms: number): number {
  return 2 ** Math.ceil(Math.log2(ms))
}

/** A window, and the block of a key, such as `60s+5s`. */
function timesText(interval: number, block: number): string {
  return block > 0 ? `${timeText(interval)}+${timeText(block)}` : timeText(interval)
}

function timeText(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`
}

/**
 * A limit as a policy can have it: a whole number from 0, because one request is one unit.
 *
 * @param option its name in the other library
 */
export function wholeLimit(limit: number, option = 'limit'): number {
  if (Number.isNaN(Number(limit))) throw invalidOption(option, limit, 'a number')
  return Math.min(Math.max(0, Math.floor(limit)), Number.MAX_SAFE_INTEGER)
}

/**
 * A window in milliseconds.
 *
 * @param option its name in the other library
 */
export function intervalOf(option: string, value: number, unit: 'milliseconds' | 'seconds' = 'milliseconds'): number {
  const perUnit = unit === 'seconds' ? 1000 : 1
  const interval = value * perUnit
  if (typeof value === 'number' && interval >= SHORTEST && interval <= LONGEST) return interval
  throw invalidOption(option, value, `a number of ${unit} from ${SHORTEST / perUnit} to ${LONGEST / perUnit}`)
}

/** Milliseconds: six spans of 5 ms. */
const SHORTEST = 30
/** Milliseconds, about 300 years. */
export const LONGEST = 1e13

/** Whole seconds until the next request can be allowed. With a limit of 0, the end of the window. */
export function secondsToWait({ retryAfterMs, resetAfterMs }: Decision): number {
  return Math.ceil((retryAfterMs === Number.POSITIVE_INFINITY ? resetAfterMs : retryAfterMs) / 1000)
}

/** Requests counted in the running interval, with this one. One above the limit for a rejected one, because it isn't counted. */
export function hitsOf({ allowed, limit, remaining }: Decision, given: number): number {
  return allowed ? Math.max(1, Math.ceil(limit - remaining)) : given + 1
}
