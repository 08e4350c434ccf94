import type { Algorithm, Coordination } from '../algorithms/algorithm.ts'
import { FIXED_WINDOW } from '../algorithms/fixed-window/epoch.ts'
import type { Degraded } from '../algorithms/meter.ts'
import { MOST_UNITS } from '../keys/units.ts'
import { parseDuration } from '../options/duration.ts'
import { checkNames } from '../options/names.ts'
import { invalidOption, show, WeirError } from '../report/errors.ts'
import type { GrowingCooldown } from './growing.ts'
import type { Policy, PolicyOptions } from './policy.ts'

/** Raised whenever the meaning or place of what a policy keeps in a store changes. */
const LAYOUT = 1
const SHORTEST_SPAN = 5
/** Milliseconds; see `defaultSpans`. */
const LONGEST_USUAL_SPAN = 300_000
const MOST_SPANS = 1000
/** How long a request waits for the store, and may be told to, in milliseconds. */
const USUAL_DEADLINE = 50
const LONGEST_DEADLINE = 60_000

/** The names of a policy's options. */
export const POLICY_OPTIONS: ReadonlySet<string> = new Set([
  'name',
  'limit',
  'interval',
  'spans',
  'cooldown',
  'algorithm',
  'coordination',
  'degraded',
  'deadline',
  'key',
  'match',
  'cost',
  'dryRun',
])

/** What takes the place of options that are no more. */
const GONE: Readonly<Record<string, string>> = {
  window: "give algorithm: slidingWindow() or slidingCounter() for 'sliding'; fixedWindow() is the default",
  enforcement: "give coordination: 'spans' for 'published'; 'background' is the default with a store",
  strict: "give coordination: 'leases': never more than the limit, and few requests wait",
  buckets: 'it is an option of the algorithm: slidingWindow({ buckets })',
  reopen: 'it is an option of the algorithm: slidingWindow({ reopen })',
}

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
  for (const option of Object.keys(options)) {
    const gone = Object.hasOwn(GONE, option) ? GONE[option] : undefined
    if (gone !== undefined) throw new WeirError('WEIR_UNKNOWN_OPTION', `Option "${at}${option}" is no more: ${gone}.`)
  }
  checkNames('A policy', options, POLICY_OPTIONS, undefined, at)
  const need = (option: 'limit' | 'interval', example: string) => {
    if (options[option] === undefined) {
      throw new WeirError('WEIR_MISSING_OPTION', `Option "${at}${option}" is missing; give e.g. ${option}: ${example}.`)
    }
  }
  need('limit', '100')
  need('interval', '"1m"')

  const { name = 'default' as Name } = options
  // Names go into header fields as structured strings and into keys of the store.
  if (typeof name !== 'string' || !/^[\x21-\x7e][\x20-\x7e]{0,63}$/.test(name)) {
    throw invalidOption(`${at}name`, name, 'a string of 1 to 64 printable ASCII characters')
  }
  const limit = options.limit
  if (typeof limit !== 'number' || !(limit >= 1 && limit <= MOST_UNITS)) {
    throw invalidOption(`${at}limit`, limit, `a number from 1 to ${MOST_UNITS}`)
  }
  const interval = parseDuration(options.interval, `${at}interval`, 2 * SHORTEST_SPAN)
  const { spans = defaultSpans(interval) } = options
  if (!Number.isInteger(spans) || spans < 2 || spans > MOST_SPANS) {
    throw invalidOption(`${at}spans`, spans, `a whole number from 2 to ${MOST_SPANS}`)
  }
  const algorithm = checkAlgorithm(`${at}algorithm`, options.algorithm)
  const { buckets = 1 } = algorithm
  if (interval / buckets < SHORTEST_SPAN) {
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      `Option "${at}interval" is ${show(options.interval)}, which is too short for ${buckets} buckets; ` +
        `one is at least ${SHORTEST_SPAN} ms, so it must be at least ${buckets * SHORTEST_SPAN} ms, or "buckets" fewer.`,
    )
  }
  const coordination = checkCoordination(`${at}coordination`, options.coordination, algorithm, shared)
  // Where each request is decided by itself spans mean nothing.
  if (coordination !== 'local' && coordination !== 'central' && interval / spans < SHORTEST_SPAN) {
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      `Option "${at}interval" is ${show(options.interval)}, which is too short for ${spans} spans; ` +
        `a span is at least ${SHORTEST_SPAN} ms, so it must be at least ${spans * SHORTEST_SPAN} ms, or "spans" fewer.`,
    )
  }
  const waits = coordination === 'central' || coordination === 'leases'
  if (options.deadline !== undefined && !waits) {
    throw invalidOption(`${at}deadline`, options.deadline, `left out with coordination "${coordination}", by which no request waits`)
  }
  const words = waits ? (['share', 'open', 'closed'] as const) : (['share', 'published', 'open', 'closed'] as const)
  const cost = options.cost
  if (typeof cost === 'number') {
    if (!(cost > 0 && Number.isFinite(cost))) throw invalidOption(`${at}cost`, cost, 'a finite number > 0, or a function of the request')
    const most = algorithm.most?.(limit) ?? limit
    const what = most === limit ? 'the limit' : `what ${algorithm.name} holds`
    if (cost > most) throw invalidOption(`${at}cost`, cost, `at most ${what}, ${most}; with it every request would be refused`)
  } else if (cost !== undefined && typeof cost !== 'function') {
    throw invalidOption(`${at}cost`, cost, 'a finite number > 0, or a function of the request')
  }
  return Object.freeze({
    name,
    limit,
    interval,
    spans,
    ...parseCooldown(options.cooldown, `${at}cooldown`),
    algorithm,
    coordination,
    degraded: oneOf<Degraded>(`${at}degraded`, options.degraded, words),
    deadline: waits ? parseDuration(options.deadline ?? USUAL_DEADLINE, `${at}deadline`, 1, LONGEST_DEADLINE) : 0,
    dryRun: bool(`${at}dryRun`, options.dryRun),
    id: `v${LAYOUT}:${algorithm.id}:${coordination}:${interval}:${name}`,
  })
}

/** Six, or as many as make a span no longer than five minutes: what a node that is killed loses at most. */
function defaultSpans(interval: number): number {
  return Math.min(MOST_SPANS, Math.max(6, Math.ceil(interval / LONGEST_USUAL_SPAN)))
}

function parseCooldown(given: unknown, option: string): Pick<Policy, 'cooldown' | 'cooldownGrowth'> {
  if (typeof given !== 'object' || given === null) {
    return { cooldown: given === undefined ? 0 : parseDuration(given, option, 0), cooldownGrowth: undefined }
  }
  const { first, growth } = given as Partial<GrowingCooldown>
  if (first === undefined || growth === undefined) {
    throw invalidOption(option, given, 'a duration, or growing({ base: "1m", max: "1h" }), with growing imported beside throttle')
  }
  return { cooldown: first, cooldownGrowth: growth }
}

/**
 * Checks and completes a throttler's policies.
 *
 * @throws WeirError as `parsePolicy`, and `WEIR_DUPLICATE_POLICY`
 */
export function parsePolicies<Name extends string>(list: readonly PolicyOptions<never, Name>[], shared: boolean): readonly Policy<Name>[] {
  if (list === undefined) {
    throw new WeirError('WEIR_MISSING_OPTION', 'Option "policies" is missing; give e.g. policies: [{ limit: 100, interval: "1m" }].')
  }
  if (!Array.isArray(list) || list.length === 0) {
    throw invalidOption('policies', list, 'a list of at least one policy')
  }
  const names = new Set<string>()
  const policies = list.map((options: PolicyOptions<never, Name>, index) =>
    parsePolicy<Name>(options, shared, list.length > 1 ? `policies[${index}].` : ''),
  )
  for (const { name } of policies) {
    if (names.has(name)) {
      throw new WeirError('WEIR_DUPLICATE_POLICY', `Two policies are named ${show(name)}; give each a "name" of its own.`)
    }
    names.add(name)
  }
  return Object.freeze(policies)
}

function checkAlgorithm(option: string, given: unknown): Algorithm {
  if (given === undefined) return FIXED_WINDOW
  const { name, id, local, background, spans, leases } = (typeof given === 'object' && given !== null ? given : {}) as Partial<Algorithm>
  const forms = [local, background, spans, leases]
  const made = forms.every((form) => form === undefined || typeof form === 'function') && forms.some((form) => form !== undefined)
  if (typeof name !== 'string' || typeof id !== 'string' || !/^[a-z\d-]{1,64}$/.test(id) || !made) {
    const hint = typeof given === 'function' ? '; it is a function, which must be called' : ''
    throw invalidOption(
      option,
      given,
      `an algorithm such as fixedWindow() or slidingWindow(), with an id of letters, digits and dashes${hint}`,
    )
  }
  const { fields = 1 } = given as Algorithm
  if (!Number.isInteger(fields) || fields < 1 || fields > MOST_FIELDS) {
    throw invalidOption(`${option}.fields`, fields, `a whole number from 1 to ${MOST_FIELDS}`)
  }
  return given as Algorithm
}

/** Numbers per key: more than any count needs, and few enough for a table of many keys. */
const MOST_FIELDS = 1000

const COORDINATIONS: readonly Coordination[] = ['background', 'spans', 'local', 'leases', 'central']

function checkCoordination(option: string, given: unknown, algorithm: Algorithm, shared: boolean): Coordination {
  const possible = COORDINATIONS.filter((one) => can(algorithm, one))
  const instead = possible.map((one) => JSON.stringify(one)).join(' or ')
  if (given === undefined) {
    const usual = shared ? 'background' : 'local'
    if (possible.includes(usual)) return usual
    throw new WeirError('WEIR_MISSING_OPTION', `Option "${option}" is missing: ${algorithm.name} can't be "${usual}"; give ${instead}.`)
  }
  if (!(COORDINATIONS as readonly unknown[]).includes(given)) throw invalidOption(option, given, instead)
  if (!(possible as readonly unknown[]).includes(given)) throw invalidOption(option, given, `${instead} with ${algorithm.name}`)
  if (!shared && given !== 'local')
    throw new WeirError('WEIR_MISSING_OPTION', `Option "${option}" is ${show(given)}, which needs a "store"; there is none.`)
  return given as Coordination
}

/** The id of what a store does for each request by this algorithm. The default one's comes with what asks the store. */
export function stepOf(algorithm: Algorithm): string | undefined {
  return algorithm === FIXED_WINDOW ? algorithm.id : algorithm.step?.id
}

/** A policy whose requests the store decides about has a local meter beside: for what is known of it here. */
function can(algorithm: Algorithm, coordination: Coordination): boolean {
  if (coordination !== 'central') return algorithm[coordination] !== undefined
  return stepOf(algorithm) !== undefined && algorithm.local !== undefined
}

/** One of a few words; the first is the default. */
export function oneOf<Word extends string>(option: string, given: unknown, words: readonly [Word, ...Word[]]): Word {
  if (given === undefined) return words[0]
  if (!(words as readonly unknown[]).includes(given)) {
    throw invalidOption(option, given, words.map((word) => JSON.stringify(word)).join(' or '))
  }
  return given as Word
}

function bool(option: string, given: unknown): boolean {
  if (given !== undefined && typeof given !== 'boolean') throw invalidOption(option, given, 'true or false')
  return given === true
}

export function isPolicyOption(option: string): boolean {
  return POLICY_OPTIONS.has(option)
}
