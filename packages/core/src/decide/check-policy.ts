import type { AnyAlgorithm, Coordination } from '../algorithms/algorithm.ts'
import type { FailMode } from '../algorithms/meter.ts'
import { isCost } from '../keys/units.ts'
import { parseDuration } from '../options/duration.ts'
import { parseInterval } from '../options/interval.ts'
import { oneOf } from '../options/one-of.ts'
import { excessOption, importOf, invalidOption, missingOption, show, WeirError } from '../report/errors.ts'
import { checkNames } from '../report/names.ts'
import { MOST_UNITS } from '../store/units.ts'
import { LONGEST_TIMER } from '../time/alarm.ts'
import { checkAlgorithm, checkCoordination } from './check-algorithm.ts'
import { waitsForStore } from './coordination.ts'
import type { EscalatingCooldown } from './escalating.ts'
import type { Policy, PolicyOptions } from './policy.ts'
import { checkRequestRule } from './request-rule.ts'

/** Increased whenever the format of a policy's data in a store changes. */
const LAYOUT = 1
const SHORTEST_SPAN = 5
/** Milliseconds. See `defaultSpans`. */
const LONGEST_USUAL_SPAN = 300_000
const MOST_SPANS = 1000
/** The default and the longest time that a request waits for the store, in milliseconds. */
const USUAL_STORE_TIMEOUT = 50
const LONGEST_STORE_TIMEOUT = 60_000

const FAIL_MODES = '"share" (this process\'s part of the limit), "open" (allow all) or "closed" (reject all)'

/** The names of a policy's options. */
export const POLICY_OPTIONS: ReadonlySet<string> = new Set([
  'name',
  'limit',
  'interval',
  'spans',
  'cooldown',
  'algorithm',
  'coordination',
  'failMode',
  'storeTimeout',
  'key',
  'match',
  'cost',
  'fallbackLimit',
  'delay',
  'dryRun',
  'candidate',
  'maxReservation',
])

/**
 * Checks and completes one policy.
 *
 * @param shared whether there is a store
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_MISSING_OPTION` or `WEIR_UNKNOWN_OPTION`, naming the option
 */
export function parsePolicy<Name extends string>(options: PolicyOptions<never, Name>, shared: boolean, at = ''): Policy<Name> {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption(at || 'policy', options, 'an object such as { limit: 100, interval: "1m" }')
  }
  checkNames('A policy', options, POLICY_OPTIONS, undefined, at)
  const algorithm = checkAlgorithm(`${at}algorithm`, options.algorithm)
  const { slots } = algorithm
  const need = (option: 'limit' | 'interval', example: string) => {
    if (options[option] === undefined) throw missingOption(`${at}${option}`, `Set it, e.g. ${option}: ${example}.`)
  }
  need('limit', '100')
  if (slots === undefined) need('interval', '"1m"')
  else checkWithout(options, slots.without, algorithm.name, at)

  const { name = 'default' as Name } = options
  // Names go into header fields as structured strings and into keys of the store.
  if (typeof name !== 'string' || !/^[\x21-\x7e][\x20-\x7e]{0,63}$/.test(name)) {
    throw invalidOption(`${at}name`, name, 'a string of 1 to 64 printable ASCII characters')
  }
  const limit = parseLimit(options, at)
  const intervals =
    slots === undefined ? parseInterval(options.interval, `${at}interval`, 2 * SHORTEST_SPAN) : { interval: 0, calendar: undefined }
  const { interval, calendar } = intervals
  if (calendar !== undefined && algorithm.calendar !== true) {
    throw invalidOption(`${at}interval`, calendar.id, `a duration such as "30d" with ${algorithm.name}, or fixedWindow() with a calendar`)
  }
  const { spans = defaultSpans(interval) } = options
  if (!Number.isInteger(spans) || spans < 2 || spans > MOST_SPANS) {
    throw invalidOption(`${at}spans`, spans, `a whole number from 2 to ${MOST_SPANS}`)
  }
  const { subWindows: buckets = 1 } = algorithm
  if (slots === undefined) checkParts(options.interval, interval, buckets, 'subWindow', at)
  const coordination = checkCoordination(`${at}coordination`, options.coordination, algorithm, shared)
  // A dry run delays no request. It counts requests without capacity as rejected.
  const counting = (coordination === 'background' && !options.dryRun && algorithm.together) || algorithm
  if (counting.holds !== undefined && options.cooldown !== undefined && options.cooldown !== 0) {
    throw excessOption(`${at}cooldown`, `${algorithm.name} delays requests, and a cooldown would block the key instead`)
  }
  // Spans have no effect if each request is decided separately.
  if (slots === undefined && coordination !== 'local' && coordination !== 'central')
    checkParts(options.interval, interval, spans, 'span', at)
  const waits = waitsForStore({ coordination })
  if (options.storeTimeout !== undefined && !waits) {
    throw excessOption(`${at}storeTimeout`, `it applies only to "leased" and "central". With "${coordination}" no request waits`)
  }
  checkCost(options.cost, limit, counting, `${at}cost`)
  checkRequestRule(options, at)
  return Object.freeze({
    name,
    limit,
    ...intervals,
    maxDuration: slots?.maxDuration ?? 0,
    spans,
    ...parseCooldown(options.cooldown, `${at}cooldown`),
    algorithm: counting,
    coordination,
    failMode: oneOf<FailMode>(`${at}failMode`, options.failMode, ['share', 'open', 'closed'], FAIL_MODES),
    storeTimeout: waits ? parseDuration(options.storeTimeout ?? USUAL_STORE_TIMEOUT, `${at}storeTimeout`, 1, LONGEST_STORE_TIMEOUT) : 0,
    delay:
      options.delay === undefined ? longestHold(counting, limit, interval) : parseDelay(options, algorithm, coordination, `${at}delay`),
    // A candidate rejects nothing.
    dryRun: flag(`${at}dryRun`, options.dryRun) || flag(`${at}candidate`, options.candidate),
    candidate: options.candidate === true,
    maxReservation: parseMaxReservation(options.maxReservation, counting.most?.(limit) ?? limit, `${at}maxReservation`),
    id: policyId(algorithm.id, coordination, calendar?.id ?? interval, name),
  })
}

/** The id of a policy in a store. Counts under another id don't fit it. */
export function policyId(algorithm: string, coordination: string, interval: number | string, name: string): string {
  return `v${LAYOUT}:${algorithm}:${coordination}:${interval}:${name}`
}

function parseDelay(
  { delay, cooldown }: PolicyOptions<never>,
  algorithm: AnyAlgorithm,
  coordination: Coordination,
  option: string,
): Policy['delay'] {
  if (cooldown !== undefined && cooldown !== 0) {
    const why = 'a cooldown blocks the key whose request "delay" would make wait'
    throw new WeirError('WEIR_INVALID_OPTION', `Use either "${option}" or "cooldown": ${why}.`)
  }
  if (algorithm.delay !== undefined) throw excessOption(option, `${algorithm.name} already delays up to "burst" requests`)
  if (typeof delay !== 'function') return parseDuration(delay, option, 1, LONGEST_TIMER)
  if (algorithm.slots !== undefined) throw invalidOption(option, delay, `a duration such as "2s" with ${algorithm.name}`)
  if (coordination !== 'local' && coordination !== 'background')
    throw invalidOption(
      option,
      delay,
      `a duration such as "2s" with coordination "${coordination}", or "local" or "background" with a function`,
    )
  return delay
}

/**
 * The longest delay by the algorithm itself, in milliseconds. At least 1 if it delays requests, because other keys may have other limits.
 */
function longestHold({ holds }: AnyAlgorithm, limit: number, interval: number): number {
  return holds === undefined ? 0 : Math.max(1, holds(limit, interval))
}

/** @param what the kind of the `parts`, each at least 5 ms long, that must fit into the interval */
function checkParts(given: unknown, interval: number, parts: number, what: 'subWindow' | 'span', at: string): void {
  if (interval / parts >= SHORTEST_SPAN) return
  const shown = typeof given === 'number' ? `${given} ms` : show(given)
  throw new WeirError(
    'WEIR_INVALID_OPTION',
    `Option "${at}interval" is ${shown}, too short for ${parts} ${what === 'span' ? what : 'sub-window'}s of at least ${SHORTEST_SPAN} ms. ` +
      `Use at least ${parts * SHORTEST_SPAN} ms, or fewer "${what}s".`,
  )
}

function checkCost(cost: unknown, limit: number, counting: AnyAlgorithm, option: string): void {
  if (cost === undefined || typeof cost === 'function') return
  if (!isCost(cost)) throw invalidOption(option, cost, 'a finite number > 0, or a function of the request')
  const most = counting.most?.(limit) ?? limit
  const what = counting.holds !== undefined ? 'the units that need not wait' : most === limit ? 'the limit' : `the size of ${counting.name}`
  if (cost > most) throw invalidOption(option, cost, `at most ${what}, ${most}, because every request would be rejected`)
}

function checkWithout(options: object, without: readonly string[], algorithm: string, at: string): void {
  for (const option of without) {
    const given = (options as Record<string, unknown>)[option]
    if (given !== undefined) throw excessOption(`${at}${option}`, `it does not apply to ${algorithm}`)
  }
}

/** The limit of keys without one from a function. */
function parseLimit({ limit, fallbackLimit }: PolicyOptions<never>, at: string): number {
  const fixed = typeof limit !== 'function'
  if (fixed && fallbackLimit !== undefined) {
    throw excessOption(`${at}fallbackLimit`, 'it applies only if "limit" is a function')
  }
  if (!fixed && fallbackLimit === undefined) {
    throw missingOption(`${at}fallbackLimit`, 'Set it, e.g. fallbackLimit: 100: it applies if the "limit" function fails or is late.')
  }
  const [option, units] = fixed ? (['limit', limit] as const) : (['fallbackLimit', fallbackLimit] as const)
  if (typeof units !== 'number' || !(units >= 1 && units <= MOST_UNITS)) {
    const most = typeof units === 'number' && units > MOST_UNITS ? ` and at most ${MOST_UNITS}` : ''
    const zero = fixed && (units as number) === 0 ? 'To reject every request, use limit: () => 0 with a "fallbackLimit".' : ''
    throw invalidOption(`${at}${option}`, units, `a number of at least 1${most}${fixed ? ', or a function of the request' : ''}`, zero)
  }
  return units
}

/** Six, or enough to make a span no longer than five minutes. A process that is killed loses the counts of one span at most. */
function defaultSpans(interval: number): number {
  return Math.min(MOST_SPANS, Math.max(6, Math.ceil(interval / LONGEST_USUAL_SPAN)))
}

function parseCooldown(given: unknown, option: string): Pick<Policy, 'cooldown' | 'cooldownGrowth'> {
  if (typeof given !== 'object' || given === null) {
    return { cooldown: given === undefined ? 0 : parseDuration(given, option, 0), cooldownGrowth: undefined }
  }
  const { first, growth } = given as Partial<EscalatingCooldown>
  if (first === undefined || growth === undefined) {
    throw invalidOption(option, given, 'a duration, or escalating({ base: "1m", max: "1h" })', importOf('escalating'))
  }
  return { cooldown: first, cooldownGrowth: growth }
}

/**
 * The `policies` of a throttler that gets its policies later, by `update`. Any other empty list is an error, because such a throttler would
 * allow all requests.
 */
export const NO_POLICIES_YET: readonly never[] = Object.freeze([])

/**
 * Checks and completes a throttler's policies.
 *
 * @throws WeirError as `parsePolicy`, and `WEIR_DUPLICATE_POLICY`
 */
export function parsePolicies<Name extends string>(list: readonly PolicyOptions<never, Name>[], shared: boolean): readonly Policy<Name>[] {
  if (list === undefined) {
    throw missingOption('policies', 'Set it, e.g. policies: [{ limit: 100, interval: "1m" }].')
  }
  if (!Array.isArray(list) || (list.length === 0 && (list as readonly unknown[]) !== NO_POLICIES_YET)) {
    throw invalidOption('policies', list, 'a list of at least one policy')
  }
  const places = new Map<string, number>()
  const policies = list.map((options: PolicyOptions<never, Name>, index) =>
    parsePolicy<Name>(options, shared, list.length > 1 ? `policies[${index}].` : ''),
  )
  for (const [place, { name }] of policies.entries()) {
    const other = places.get(name)
    if (other !== undefined) {
      const unnamed = name === 'default' ? ', the name of policies without one' : ''
      const what = `policies[${other}] and policies[${place}] are both named ${show(name)}${unnamed}`
      throw new WeirError('WEIR_DUPLICATE_POLICY', `${what}. Give each a different "name".`)
    }
    places.set(name, place)
  }
  return Object.freeze(policies)
}

function parseMaxReservation(given: unknown, most: number, option: string): number | undefined {
  if (given === undefined || (Number.isInteger(given) && (given as number) >= 1 && (given as number) <= most))
    return given as number | undefined
  throw invalidOption(option, given, `a whole number from 1 to ${most}`)
}

function flag(option: string, given: unknown): boolean {
  if (given !== undefined && typeof given !== 'boolean') throw invalidOption(option, given, 'true or false')
  return given === true
}

export function isPolicyOption(option: string): boolean {
  return POLICY_OPTIONS.has(option)
}
