import { boundedOnce } from '../keys/key-text.ts'
import { isLimit } from '../keys/units.ts'
import { show, WeirError } from '../report/errors.ts'
import type { Keys, Limits } from './asking.ts'
import type { Limiter } from './limiter.ts'
import { ALL_KEY } from './policy.ts'

/** Limits of single keys that came with requests: each holds for the decision of its request. */
export class GivenLimits {
  readonly #warn: (error: WeirError, subject: string) => void
  #limiters: readonly Limiter[] = []
  #shared: readonly boolean[] = []
  /** Whether a key may have one. */
  any = false

  constructor(warn: (error: WeirError, subject: string) => void) {
    this.#warn = warn
  }

  /** @param shared of each policy whether all requests share one key */
  adopt(limiters: readonly Limiter[], shared: readonly boolean[]): void {
    this.#limiters = limiters
    this.#shared = shared
    this.any = limiters.some(({ given }) => given)
  }

  /** The limit that a request gave; undefined where it gave none, or one that can't be used. */
  checked(limit: number | undefined): number | undefined {
    if (limit === undefined || isLimit(limit)) return limit
    const what = `check(key, { limit: ${show(limit)} }): "limit" must be 0, Infinity or at least 1`
    this.#warn(new WeirError('WEIR_WARN_INVALID_LIMIT', `${what}. Weir used the policy's own limit.`), 'limit')
    return undefined
  }

  /** Gives a key its limit in all policies. Without one that of each policy holds again. Whether anything may have changed. */
  giveAll(key: string, given: number | undefined): boolean {
    if (given === undefined && !this.any) return false
    this.any = true
    const limit = this.checked(given)
    for (const [place, limiter] of this.#limiters.entries()) {
      this.#give(limiter, this.#shared[place] === true ? ALL_KEY : key, limit)
    }
    return true
  }

  /** Gives a key of one policy the limit again that a request came with: another one may have come while it waited. */
  giveAgain(limiter: Limiter, key: string, limit: number | undefined): boolean {
    if (limit === undefined && !this.any) return false
    this.any = true
    this.#give(limiter, key, limit)
    return true
  }

  /** Notes the limits that keys have in a request that is to wait; the function that is returned gives them again. */
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

  /** Gives keys their limits; where a policy has none of the request, its own holds again. Whether anything may have changed. */
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
