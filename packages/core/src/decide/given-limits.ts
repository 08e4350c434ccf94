import { boundedOnce } from '../keys/key-text.ts'
import { isLimit } from '../keys/units.ts'
import { show, WeirError } from '../report/errors.ts'
import type { Keys, Limits } from './asking.ts'
import type { Limiter } from './limiter.ts'
import { ALL_KEY } from './policy.ts'

/** Limits of single keys that came with requests. Each applies to the decision of its request. */
export class GivenLimits {
  readonly #warn: (error: WeirError, subject: string) => void
  #limiters: readonly Limiter[] = []
  #shared: readonly boolean[] = []
  /** Whether a key may have such a limit. */
  any = false

  constructor(warn: (error: WeirError, subject: string) => void) {
    this.#warn = warn
  }

  /** @param shared for each policy, whether all requests share one key */
  adopt(limiters: readonly Limiter[], shared: readonly boolean[]): void {
    this.#limiters = limiters
    this.#shared = shared
    this.any = limiters.some(({ given }) => given)
  }

  /** The limit of a request. Undefined without one, or if it is invalid. */
  checked(limit: number | undefined): number | undefined {
    if (limit === undefined || isLimit(limit)) return limit
    const what = `check(key, { limit: ${show(limit)} }): "limit" must be 0, Infinity or at least 1`
    this.#warn(new WeirError('WEIR_WARN_INVALID_LIMIT', `${what}. Weir used the policy's own limit.`), 'limit')
    return undefined
  }

  /**
   * Sets the limit of a key in all policies. Without a limit, the policies' own limits apply again. Returns whether a limit may have
   * changed.
   */
  giveAll(key: string, given: number | undefined): boolean {
    if (given === undefined && !this.any) return false
    this.any = true
    const limit = this.checked(given)
    for (const [place, limiter] of this.#limiters.entries()) {
      this.#give(limiter, this.#shared[place] === true ? ALL_KEY : key, limit)
    }
    return true
  }

  /** Restores the limit of a request for one policy's key, because another request may have changed it meanwhile. */
  giveAgain(limiter: Limiter, key: string, limit: number | undefined): boolean {
    if (limit === undefined && !this.any) return false
    this.any = true
    this.#give(limiter, key, limit)
    return true
  }

  /** Notes the limits of the keys of a request before it waits. The returned function restores them. */
  note(keys: Keys): () => boolean {
    const limiters = this.#limiters
    const given = limiters.map((limiter, place) => limiter.givenTo(boundedOnce(keys[place] ?? '')))
    return () => {
      limiters.forEach((limiter, place) => {
        const key = keys[place]
        if (key !== undefined) this.giveAgain(limiter, key, given[place])
      })
      return this.any
    }
  }

  #give(limiter: Limiter, given: string, limit: number | undefined): void {
    const key = boundedOnce(given)
    const slot = limit === undefined ? limiter.table.find(key) : limiter.locate(key)
    if (slot >= 0 && !limiter.isShared(slot)) limiter.limitTo(slot, limit)
  }

  /** Sets the limits of keys. If a policy has none from the request, its own applies again. Returns whether a limit may have changed. */
  giveEach(keys: Keys, limits: Limits | undefined): boolean {
    if (limits === undefined && !this.any) return false
    this.any = true
    for (const [place, limiter] of this.#limiters.entries()) {
      const key = keys[place]
      if (key === undefined) continue
      const limit = this.checked(limits?.[place])
      if (limit === undefined && !limiter.limited) continue
      this.#give(limiter, key, limit)
    }
    return true
  }
}
