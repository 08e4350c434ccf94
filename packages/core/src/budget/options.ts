import { type Costs, isByName } from '../decide/costs.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import { oneOf } from '../options/one-of.ts'
import { invalidOption } from '../report/errors.ts'
import { checkNames } from '../report/names.ts'
import { LONGEST_TIMER } from '../time/alarm.ts'

/** Options of a reservation whose units are counted already. */
export interface ReservationOptions {
  /**
   * Sets after how long the reservation settles itself: 10 ms to 24 days. Choose it longer than your longest call. After the end of its
   * interval its units don't count, even if it is still open.
   *
   * @default '5m'
   */
  readonly ttl?: Duration
  /**
   * Decides about units whose use was not reported by `used` when the reservation settles itself.
   *
   * - `'charge'`: they count. So a client can't get them back by a disconnect.
   * - `'refund'`: they return.
   *
   * @default 'charge'
   */
  readonly expire?: 'charge' | 'refund'
}

/** Options of `reserve` and `reserveAsync`. */
export interface ReserveOptions<Name extends string = string> extends ReservationOptions {
  /**
   * Sets the units to reserve at each policy, by name: whole numbers of at least 1. Other policies are not counted. Count money in
   * millionths, because sums of fractions are inexact. Throws `WEIR_UNKNOWN_POLICY` for another name.
   *
   * @example
   * { requests: 1, tokens: input + maxOutput, usd: 12_500 }
   */
  readonly cost: Costs<Name>
  /**
   * Returns the same receipt for a further call with this key and id while the reservation is open, so that a repeated call does not
   * reserve twice. At most 256 characters. Use an id of your own code, never one that a client sends. Throws `WEIR_INVALID_OPTION` if the
   * costs differ.
   *
   * @default none: each call makes a new reservation
   */
  readonly id?: string
}

/** Checked options. */
export interface Reserving {
  /** Milliseconds. */
  readonly ttl: number
  readonly refunds: boolean
}

const USUAL_TTL = 300_000
const SHORTEST_TTL = 10
const LONGEST_ID = 256
const OPTIONS: readonly string[] = ['cost', 'ttl', 'expire', 'id'] satisfies (keyof ReserveOptions)[]

/** The last options that were read, because most calls have the same. */
let known: Reserving & { readonly given: Duration; readonly expire: ReservationOptions['expire'] } = {
  given: USUAL_TTL,
  ttl: USUAL_TTL,
  expire: undefined,
  refunds: false,
}

/** @throws WeirError `WEIR_INVALID_OPTION` */
export function reservingOf({ ttl = USUAL_TTL, expire }: ReservationOptions): Reserving {
  if (ttl === known.given && expire === known.expire) return known
  const refunds = expire !== undefined && oneOf('expire', expire, ['charge', 'refund']) === 'refund'
  known = { given: ttl, ttl: parseDuration(ttl, 'ttl', SHORTEST_TTL, LONGEST_TIMER), expire, refunds }
  return known
}

/** @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION` */
export function checkReserve(call: string, options: ReserveOptions): void {
  if (typeof options !== 'object' || options === null)
    throw invalidOption('options', options, 'an object such as { cost: { tokens: 900 } }')
  for (const option in options) if (!OPTIONS.includes(option)) checkNames(`${call}()`, options, OPTIONS)
  const { cost, id } = options
  if (!isByName(cost)) throw invalidOption('cost', cost, 'units by policy name, such as { requests: 1, tokens: 900 }')
  if (id !== undefined && (typeof id !== 'string' || id.length === 0 || id.length > LONGEST_ID))
    throw invalidOption('id', id, `a text of 1 to ${LONGEST_ID} characters`)
  let named = false
  for (const name in cost) {
    const units = cost[name]
    if (units !== undefined) named = true
    if (units !== undefined && !(Number.isSafeInteger(units) && units >= 1))
      throw invalidOption(
        `cost.${name}`,
        units,
        'a whole number of at least 1',
        'Round it up, or leave the policy out if the call uses none of it.',
      )
  }
  if (!named) throw invalidOption('cost', cost, 'units of at least one policy, such as { requests: 1, tokens: 900 }')
}
