import { serializeInteger, serializeString } from 'structured-headers'
import type { Decision, Limited, Listed } from '../../decide/decision.ts'
import type { Policy } from '../../decide/policy.ts'
import { invalidOption } from '../../report/errors.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import type { Ordinal } from '../../time/intervals.ts'

/**
 * A style of the response headers that show clients their limits.
 * - `'draft-11'`: `RateLimit-Policy` and `RateLimit` with an item for each policy (draft-ietf-httpapi-ratelimit-headers-11; -10 is the
 *   same).
 * - `'draft-7'`: `RateLimit-Policy` and `RateLimit: limit=100, remaining=73, reset=21`.
 * - `'draft-6'`: `RateLimit-Policy`, `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` (seconds from now).
 * - `'legacy'`: `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds from now).
 * - `'legacy-unix'`: the same with the reset as a Unix time, in seconds.
 */
export type HeaderStyle = 'draft-11' | 'draft-7' | 'draft-6' | 'legacy' | 'legacy-unix'

/** Sets one response header. Each adapter has one constant function. */
export type SetHeader<Res> = (response: Res, name: string, value: string) => void

/** Lists all headers that show clients their limits, in any style. */
export const LIMIT_FIELDS: readonly string[] = [
  'RateLimit-Policy',
  'RateLimit',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
]

/** Lists the headers that browsers hide from scripts of other origins, unless `Access-Control-Expose-Headers` contains them. */
export const EXPOSED_HEADERS: readonly string[] = ['RateLimit', 'RateLimit-Policy', 'Retry-After']

/**
 * Returns whether a header is a list with an item for each policy, so that another throttler's items are added to it. Other headers are
 * overwritten, so the last throttler's value is sent.
 */
export function isListField(name: string, value: string): boolean {
  return name === 'RateLimit-Policy' || (name === 'RateLimit' && value.charCodeAt(0) === QUOTE)
}

const QUOTE = 0x22

/** Largest integer of a structured field (RFC 9651, section 3.3.1). */
const LARGEST = 999_999_999_999_999

/** The parts of a policy's fields that never change. */
interface PolicyFields {
  /** Its item of `RateLimit-Policy`, e.g. `"user";q=100;w=60`. */
  readonly item: string
  /** The beginning of its item of `RateLimit`, e.g. `"user";r=`. */
  readonly remaining: string
  /** The limit alone, and the limit with its window in the form of older drafts, e.g. `100;w=60`. */
  readonly limit: string
  readonly quota: string
  /** Whether it limits requests in flight, whose end is unknown. */
  readonly slots: boolean
}

/** The parts of the fields that never change for requests to which the same policies apply. */
interface ListFields {
  readonly list: PolicyList
  readonly policyField: string
  readonly quotas: string
  readonly items: readonly PolicyFields[]
}

type PolicyList = readonly Limited[]

/** The parts of the fields of older styles. */
interface Numbers {
  readonly policies: string
  readonly limit: string
  readonly remaining: number
  /** Seconds until all units are back, or until a rejected request fits. Undefined if the time is unknown. */
  readonly reset: number | undefined
  /** The same as a Unix time, in seconds. */
  readonly resetAt: number | undefined
}

type Field = readonly [name: string, value: string | number | undefined]

/** The fields of all styles except the current draft's. A field without a value is left out. */
const OLDER: Readonly<Record<Exclude<HeaderStyle, 'draft-11'>, (numbers: Numbers) => readonly Field[]>> = {
  'draft-7': ({ policies, limit, remaining, reset }) => [
    ['RateLimit-Policy', policies],
    ['RateLimit', `limit=${limit}, remaining=${remaining}${reset === undefined ? '' : `, reset=${reset}`}`],
  ],
  'draft-6': (numbers) => [['RateLimit-Policy', numbers.policies], ...triple('RateLimit', numbers, numbers.reset)],
  legacy: (numbers) => triple('X-RateLimit', numbers, numbers.reset),
  'legacy-unix': (numbers) => triple('X-RateLimit', numbers, numbers.resetAt),
}

function triple(prefix: string, { limit, remaining }: Numbers, reset: number | undefined): readonly Field[] {
  return [
    [`${prefix}-Limit`, limit],
    [`${prefix}-Remaining`, remaining],
    [`${prefix}-Reset`, reset],
  ]
}

const STYLES = '"draft-11", "draft-7", "draft-6", "legacy", "legacy-unix", a list of one draft and one legacy style, or false'

/**
 * Checks the option `headers`, and returns its styles as a list.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` for an unknown style, two drafts or two legacy styles
 */
export function checkHeaders(given: unknown): readonly HeaderStyle[] {
  const styles: unknown = given === false ? [] : typeof given === 'string' ? [given] : given
  const known = (style: unknown) => style === 'draft-11' || (typeof style === 'string' && Object.hasOwn(OLDER, style))
  if (!Array.isArray(styles) || !styles.every(known)) throw invalidOption('headers', given, STYLES)
  const drafts = styles.filter((style) => style.startsWith('draft'))
  if (drafts.length > 1 || styles.length > drafts.length + 1) throw invalidOption('headers', given, STYLES)
  return styles
}

/** Writes the fields of `headers`. */
export class HeaderWriter {
  readonly #several: boolean
  readonly #draft: boolean
  readonly #older: readonly ((numbers: Numbers) => readonly Field[])[]
  readonly #clock: Pick<Clock, 'now'>
  /** Whether equal decisions get equal fields at any time. */
  readonly timeless: boolean
  // The keys are weak, because a throttler may replace its policies at run time.
  readonly #fields = new WeakMap<Policy, PolicyFields>()
  /** The fields of the previous request, which most often had the same policies. */
  #last: ListFields | undefined

  /**
   * @param clock - gives the time for `'legacy-unix'`
   * @throws WeirError `WEIR_INVALID_OPTION` for an unknown style
   */
  constructor(
    policies: readonly Policy[],
    style: HeaderStyle | readonly HeaderStyle[] | false = 'draft-11',
    clock: Pick<Clock, 'now'> = systemClock,
  ) {
    const styles = checkHeaders(style)
    this.#several = policies.length > 1
    this.#draft = styles.includes('draft-11')
    this.#older = styles.flatMap((name) => (name === 'draft-11' ? [] : [OLDER[name]]))
    this.timeless = !styles.includes('legacy-unix')
    this.#clock = clock
    for (const policy of policies) this.#usual(policy)
  }

  /** Sets the fields for a decision. Writes nothing if no policy applied. */
  write<Res>(decision: Decision, response: Res, set: SetHeader<Res>): void {
    // The list is checked first, because `policy` of a decision of several policies searches for the decisive one.
    if (listedOf(decision) === undefined && decision.policy === undefined) return
    if (this.#draft) {
      set(response, 'RateLimit-Policy', this.policyField(decision))
      set(response, 'RateLimit', this.limitField(decision))
    }
    if (this.#older.length > 0) this.#writeOlder(decision, response, set)
  }

  #writeOlder<Res>(decision: Decision, response: Res, set: SetHeader<Res>): void {
    const fields = this.#of(decision)
    const wait = waitOf(decision)
    const known = wait > 0 || !fields.slots
    const numbers: Numbers = {
      policies: this.#several ? this.#ofList(listOf(decision)).quotas : fields.quota,
      limit: fields.limit,
      remaining: whole(decision.remaining),
      reset: known ? seconds(wait) : undefined,
      resetAt: known ? seconds(this.#clock.now() + Math.max(0, wait)) : undefined,
    }
    for (const style of this.#older) {
      for (const [name, value] of style(numbers)) if (value !== undefined) set(response, name, String(value))
    }
  }

  /** The value of `RateLimit-Policy`: a list with an item for each policy that applies. */
  policyField(decision: Decision): string {
    return this.#several ? this.#ofList(listOf(decision)).policyField : this.#of(decision).item
  }

  /** The value of `RateLimit`: a list with an item for each policy that applies. */
  limitField(decision: Decision): string {
    if (!this.#several) return limitItem(this.#of(decision), decision.remaining, waitOf(decision))
    const { items } = this.#ofList(listOf(decision))
    let value = ''
    for (let i = 0; i < items.length; i++) {
      if (i > 0) value += ', '
      value += this.#itemAt(decision, i, items[i] as PolicyFields)
    }
    return value
  }

  #itemAt(decision: Decision, i: number, fields: PolicyFields): string {
    // The numbers of a list can be read without making the parts.
    const listed = listedOf(decision)
    if (listed !== undefined) return limitItem(fields, listed.remainingAt(i), listed.resetAfterAt(i))
    const part = decision.parts[i] as Decision
    return limitItem(fields, part.remaining, waitOf(part))
  }

  #ofList(list: PolicyList): ListFields {
    if (this.#last?.list !== list) {
      const items = list.map((one) => this.#of(one))
      const policyField = items.map(({ item }) => item).join(', ')
      this.#last = { list, items, policyField, quotas: items.map(({ quota }) => quota).join(', ') }
    }
    return this.#last
  }

  #of({ policy, limit = policy?.limit, ordinal }: Limited): PolicyFields {
    // The intervals of a calendar differ in length.
    const usual = limit === policy?.limit && policy?.calendar === undefined
    return usual ? this.#usual(policy as Policy) : build(policy as Policy, limit as number, ordinal)
  }

  #usual(policy: Policy): PolicyFields {
    let fields = this.#fields.get(policy)
    if (fields === undefined) this.#fields.set(policy, (fields = build(policy, policy.limit)))
    return fields
  }
}

function build(policy: Policy, units: number, ordinal?: Ordinal): PolicyFields {
  const limit = whole(units)
  // The draft has only whole seconds. A rounded window would promise another rate.
  const running = ordinal === undefined ? undefined : policy.calendar?.of(ordinal)
  const seconds = (running === undefined ? policy.interval : running.end - running.start) / 1000
  const { slots } = policy.algorithm
  const exact = Number.isInteger(seconds) && seconds <= LARGEST
  const unit = slots === undefined ? '' : `;qu=${serializeString(slots.unit)}`
  const window = slots === undefined && exact ? `;w=${serializeInteger(seconds)}` : ''
  // The draft has no parameter for the units that may come at once, beside the pace of `q` per `w`.
  const most = policy.algorithm.burst?.(units)
  const burst = most === undefined ? '' : `;weir-burst=${serializeInteger(whole(most))}`
  const name = serializeString(policy.name)
  return {
    item: `${name};q=${serializeInteger(limit)}${unit}${window}${burst}`,
    remaining: `${name};r=`,
    limit: String(limit),
    quota: `${limit}${window}`,
    slots: slots !== undefined,
  }
}

function whole(units: number): number {
  if (!(units > 0)) return 0
  return units >= LARGEST ? LARGEST : Math.floor(units)
}

/** The policies of a decision: the same list as long as possible, so that fields can be reused. */
function listOf(decision: Decision): PolicyList {
  return listedOf(decision)?.policies ?? decision.parts
}

function listedOf(decision: Decision & Partial<Listed>): Listed | undefined {
  return decision.listed
}

/** An item of `RateLimit`. `wait` is in milliseconds. */
function limitItem(fields: PolicyFields, remaining: number, wait: number): string {
  const amount = `${fields.remaining}${whole(remaining)}`
  return fields.slots && !(wait > 0) ? amount : `${amount};t=${seconds(wait)}`
}

/** Milliseconds until all units are back. A rejected request gets the time of its `Retry-After`, because the draft forbids a later one. */
function waitOf({ allowed, resetAfterMs, retryAfterMs }: Decision): number {
  // A request that never fits has no time to come again, so it gets the reset.
  return allowed || retryAfterMs === Number.POSITIVE_INFINITY ? resetAfterMs - CLOCK_NOISE : retryAfterMs
}

/** Milliseconds that `resetAfterMs` may be too long. Rounded up, a clock's fractions would make 3601 s of an hour. */
const CLOCK_NOISE = 1

/** Seconds of a wait, rounded up. */
function seconds(wait: number): number {
  return whole(Math.ceil(wait / 1000))
}

/**
 * The value of `Retry-After`: whole seconds, rounded up, at least 1. If several policies rejected, it is the longest wait. Undefined for a
 * request that never fits. 0 if the time is unknown, because requests in flight must end first.
 */
export function retryAfterSeconds(decision: Decision): number | undefined {
  let wait = decision.retryAfterMs
  const { parts } = decision
  for (let i = 0; i < parts.length; i++) {
    const one = parts[i] as Decision
    if (!one.allowed && one.retryAfterMs > wait) wait = one.retryAfterMs
  }
  return wait === Number.POSITIVE_INFINITY ? undefined : whole(Math.ceil(wait / 1000))
}
