/** The key and cost of a request for one policy. */
interface Part {
  readonly id: string
  readonly key: string
  readonly cost: number
  readonly limit: number | undefined
}

/** The key and cost of a request for each policy, by the current index of the policies. */
export interface AskedNow {
  readonly keys: readonly (string | undefined)[]
  readonly costs: readonly number[]
  /** The indexes of the policies that apply. */
  readonly places: readonly number[]
  readonly limits: readonly (number | undefined)[] | undefined
}

interface Placed {
  readonly policy: { readonly id: string }
}

/**
 * A key and a cost for each policy that applies to a request, as adapters read them. It stays correct while the request waits, even if
 * policies move to other indexes. Removed policies no longer apply.
 */
export class Asked {
  readonly #parts: readonly Part[]
  #limiters: readonly Placed[] | undefined
  #now: AskedNow | undefined

  private constructor(parts: readonly Part[]) {
    this.#parts = parts
  }

  /** @param places indexes of the policies that apply. The caller may reuse the arrays afterwards */
  static of(limiters: readonly Placed[], { keys, costs, places, limits }: AskedNow): Asked {
    const parts: Part[] = []
    for (const place of places) {
      const key = keys[place]
      const id = limiters[place]?.policy.id
      if (key !== undefined && id !== undefined) parts.push({ id, key, cost: costs[place] as number, limit: limits?.[place] })
    }
    return new Asked(parts)
  }

  /** The number of policies that apply. */
  get size(): number {
    return this.#parts.length
  }

  /** Whether both contain the same policies, each with the same key, cost and limit. */
  isLike(other: Asked): boolean {
    if (other.size !== this.size) return false
    return this.#parts.every(({ id, key, cost, limit }, at) => {
      const part = other.#parts[at] as Part
      return id === part.id && key === part.key && cost === part.cost && limit === part.limit
    })
  }

  /** A copy with only the policies whose id passes the test. */
  only(which: (id: string) => boolean): Asked {
    return new Asked(this.#parts.filter(({ id }) => which(id)))
  }

  at(limiters: readonly Placed[]): AskedNow {
    if (this.#now !== undefined && this.#limiters === limiters) return this.#now
    const parts = limiters.map(({ policy }) => this.#parts.find(({ id }) => id === policy.id))
    this.#limiters = limiters
    this.#now = {
      keys: parts.map((part) => part?.key),
      costs: parts.map((part) => part?.cost ?? 1),
      places: parts.flatMap((part, place) => (part === undefined ? [] : [place])),
      limits: parts.some((part) => part?.limit !== undefined) ? parts.map((part) => part?.limit) : undefined,
    }
    return this.#now
  }
}
