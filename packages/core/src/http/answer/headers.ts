import { serializeInteger, serializeString } from 'structured-headers'
import type { Decision } from '../../decide/decision.ts'
import { LevelsDecision } from '../../decide/levels.ts'
import type { Policy } from '../../decide/policy.ts'
import { invalidOption } from '../../report/errors.ts'

/**
 * Which fields tell clients about their limits.
 * - `'draft-10'`: `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10).
 * - `'legacy'`: `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds from now).
 * - `'both'`, or `false` for none of them.
 */
export type HeaderStyle = 'draft-10' | 'legacy' | 'both' | false

/** Sets one response header; one constant function for each adapter. */
export type SetHeader<Res> = (response: Res, name: string, value: string) => void

/** All fields that tell clients about their limits, in either style. */
export const LIMIT_FIELDS: readonly string[] = [
  'RateLimit-Policy',
  'RateLimit',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
]

/** The fields that browsers hide from scripts of other origins unless they stand in `Access-Control-Expose-Headers`. */
export const EXPOSED_HEADERS: readonly string[] = ['RateLimit', 'RateLimit-Policy', 'Retry-After']

/** Largest integer of a structured field (RFC 9651, section 3.3.1). */
const LARGEST = 999_999_999_999_999

/** What of a policy's fields never changes. */
interface PolicyFields {
  /** Its item of `RateLimit-Policy`, e.g. `"user";q=100;w=60`. */
  readonly item: string
  /** The beginning of its item of `RateLimit`, e.g. `"user";r=`. */
  readonly remaining: string
  /** `X-RateLimit-Limit`. */
  readonly limit: string
}

/** What of the fields never changes for requests that the same policies apply to. */
interface ListFields {
  readonly list: PolicyList
  readonly policyField: string
  readonly items: readonly PolicyFields[]
}

type PolicyList = readonly { readonly policy: Policy | undefined }[]

/** Writes the fields of `headers`. */
export class HeaderWriter {
  readonly #several: boolean
  readonly #draft: boolean
  readonly #legacy: boolean
  // Held weakly, since a throttler may replace its policies at run time.
  readonly #fields = new WeakMap<Policy, PolicyFields>()
  /** Of the request before, which most often had the same policies. */
  #last: ListFields | undefined

  /** @throws WeirError `WEIR_INVALID_OPTION` for an unknown style */
  constructor(policies: readonly Policy[], style: HeaderStyle = 'draft-10') {
    if (style !== 'draft-10' && style !== 'legacy' && style !== 'both' && style !== false) {
      throw invalidOption('headers', style, '"draft-10", "legacy", "both" or false')
    }
    this.#several = policies.length > 1
    this.#draft = style === 'draft-10' || style === 'both'
    this.#legacy = style === 'legacy' || style === 'both'
    for (const policy of policies) this.#of(policy)
  }

  /** Sets the fields for a decision. Writes nothing when no policy applied. */
  write<Res>(decision: Decision, response: Res, set: SetHeader<Res>): void {
    // `policy` of a decision of several policies takes a search for the decisive one.
    if (!(decision instanceof LevelsDecision) && decision.policy === undefined) return
    if (this.#draft) {
      set(response, 'RateLimit-Policy', this.policyField(decision))
      set(response, 'RateLimit', this.limitField(decision))
    }
    if (this.#legacy) {
      set(response, 'X-RateLimit-Limit', this.#of(decision.policy as Policy).limit)
      set(response, 'X-RateLimit-Remaining', String(whole(decision.remaining)))
      set(response, 'X-RateLimit-Reset', String(seconds(waitOf(decision))))
    }
  }

  /** The value of `RateLimit-Policy`: a list with an item for each policy that applies. */
  policyField(decision: Decision): string {
    return this.#several ? this.#ofList(listOf(decision)).policyField : this.#of(decision.policy as Policy).item
  }

  /** The value of `RateLimit`: a list with an item for each policy that applies. */
  limitField(decision: Decision): string {
    if (!this.#several) return limitItem(this.#of(decision.policy as Policy), decision.remaining, waitOf(decision))
    const { items } = this.#ofList(listOf(decision))
    let value = ''
    for (let i = 0; i < items.length; i++) {
      if (i > 0) value += ', '
      value += this.#itemAt(decision, i, items[i] as PolicyFields)
    }
    return value
  }

  #itemAt(decision: Decision, i: number, fields: PolicyFields): string {
    // Its numbers can be read without making its parts.
    if (decision instanceof LevelsDecision) return limitItem(fields, decision.remainingAt(i), decision.resetAfterAt(i))
    const part = decision.parts[i] as Decision
    return limitItem(fields, part.remaining, waitOf(part))
  }

  #ofList(list: PolicyList): ListFields {
    if (this.#last?.list !== list) {
      const items = list.map(({ policy }) => this.#of(policy as Policy))
      this.#last = { list, items, policyField: items.map(({ item }) => item).join(', ') }
    }
    return this.#last
  }

  #of(policy: Policy): PolicyFields {
    let fields = this.#fields.get(policy)
    if (fields === undefined) this.#fields.set(policy, (fields = build(policy)))
    return fields
  }
}

function build(policy: Policy): PolicyFields {
  const limit = whole(policy.limit)
  // The draft knows whole seconds only; a rounded window would promise another rate.
  const seconds = policy.interval / 1000
  const window = Number.isInteger(seconds) && seconds <= LARGEST ? `;w=${serializeInteger(seconds)}` : ''
  // The draft has no word for what may come at once beside the pace of `q` per `w`.
  const most = policy.algorithm.burst?.(policy.limit)
  const burst = most === undefined ? '' : `;weir-burst=${serializeInteger(whole(most))}`
  const name = serializeString(policy.name)
  return { item: `${name};q=${serializeInteger(limit)}${window}${burst}`, remaining: `${name};r=`, limit: String(limit) }
}

function whole(units: number): number {
  if (!(units > 0)) return 0
  return units >= LARGEST ? LARGEST : Math.floor(units)
}

/** What a decision says of each policy that applies: the same list as long as it can be. */
function listOf(decision: Decision): PolicyList {
  return decision instanceof LevelsDecision ? decision.levels.cells : decision.parts
}

/** An item of `RateLimit`; `wait` in milliseconds. */
function limitItem(fields: PolicyFields, remaining: number, wait: number): string {
  return `${fields.remaining}${whole(remaining)};t=${seconds(wait)}`
}

/** Milliseconds until units come back. For a refused request never later than its `Retry-After`, as the draft asks. */
function waitOf({ allowed, resetAfter, retryAfter }: Decision): number {
  // A request that never fits has no time to come again.
  return allowed || retryAfter === Number.POSITIVE_INFINITY ? resetAfter - CLOCK_NOISE : retryAfter
}

/** Milliseconds that `resetAfter` may be too long: a clock's fractions, rounded up, would make 3601 s of an hour. */
const CLOCK_NOISE = 1

/** Seconds until units come back, rounded up. */
function seconds(wait: number): number {
  return whole(Math.ceil(wait / 1000))
}

/**
 * The value of `Retry-After`: whole seconds, rounded up, at least 1; of the policies that refused, the longest wait. Undefined for a
 * request that never fits.
 */
export function retryAfterSeconds(decision: Decision): number | undefined {
  let wait = decision.retryAfter
  const { parts } = decision
  for (let i = 0; i < parts.length; i++) {
    const one = parts[i] as Decision
    if (!one.allowed && one.retryAfter > wait) wait = one.retryAfter
  }
  return wait === Number.POSITIVE_INFINITY ? undefined : Math.max(1, whole(Math.ceil(wait / 1000)))
}
