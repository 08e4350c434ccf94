import { MOST_UNITS } from '../keys/units.ts'
import { nearest } from '../report/did-you-mean.ts'
import { invalidOption, show, WeirError } from '../report/errors.ts'
import { parseDuration } from '../time/duration.ts'
import type { Degraded, Enforcement, GrowingCooldown, Policy, PolicyOptions, WindowShape } from './policy.ts'

/** Raised whenever the meaning or place of what a policy keeps in a store changes. */
const LAYOUT = 1
const SHORTEST_SPAN = 5

/** The names of a policy's options. */
export const POLICY_OPTIONS: ReadonlySet<string> = new Set([
  'name',
  'limit',
  'interval',
  'spans',
  'cooldown',
  'window',
  'buckets',
  'reopen',
  'enforcement',
  'degraded',
  'strict',
  'key',
  'match',
  'cost',
  'dryRun',
])

/**
 * Checks and completes one policy.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_MISSING_OPTION` or `WEIR_UNKNOWN_OPTION`, naming the option
 */
export function parsePolicy<Name extends string>(options: PolicyOptions<never, Name>, at = ''): Policy<Name> {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption(at || 'policy', options, 'an object such as { limit: 100, interval: "1m" }')
  }
  for (const option of Object.keys(options)) {
    if (!POLICY_OPTIONS.has(option)) {
      const near = nearest(option, POLICY_OPTIONS)
      throw new WeirError(
        'WEIR_UNKNOWN_OPTION',
        `Unknown option "${at}${option}".${near ? ` Did you mean "${near}"?` : ''} A policy has: ${[...POLICY_OPTIONS].join(', ')}.`,
      )
    }
  }
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
  const { spans = 6 } = options
  if (!Number.isInteger(spans) || spans < 2 || spans > 1000) {
    throw invalidOption(`${at}spans`, spans, 'a whole number from 2 to 1000')
  }
  if (interval / spans < SHORTEST_SPAN) {
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      `Option "${at}interval" is ${show(options.interval)}, which is too short for ${spans} spans; ` +
        `a span is at least ${SHORTEST_SPAN} ms, so it must be at least ${spans * SHORTEST_SPAN} ms, or "spans" fewer.`,
    )
  }
  const window = oneOf<WindowShape>(`${at}window`, options.window, ['fixed', 'sliding'])
  const enforcement = oneOf<Enforcement>(`${at}enforcement`, options.enforcement, ['proof', 'published'])
  const sliding = window === 'sliding' && enforcement === 'proof'
  for (const option of ['buckets', 'reopen'] as const) {
    if (options[option] !== undefined && !sliding) {
      throw invalidOption(`${at}${option}`, options[option], 'left out unless window is "sliding" with enforcement "proof"')
    }
  }
  const { buckets = sliding ? 30 : 1, reopen = 0.1 } = options
  if (sliding && (!Number.isInteger(buckets) || buckets < 6 || buckets > 120 || interval / buckets < SHORTEST_SPAN)) {
    throw invalidOption(`${at}buckets`, buckets, `a whole number from 6 to 120, and at most interval / ${SHORTEST_SPAN} ms`)
  }
  if (typeof reopen !== 'number' || !(reopen > 0 && reopen <= 1)) {
    throw invalidOption(`${at}reopen`, reopen, 'a number greater than 0 and at most 1')
  }
  const strict = bool(`${at}strict`, options.strict)
  if (strict && (window !== 'fixed' || enforcement !== 'proof')) {
    throw invalidOption(`${at}strict`, true, `false for window "${window}" with enforcement "${enforcement}"`)
  }
  const cost = options.cost
  if (typeof cost === 'number') {
    if (!(cost > 0 && Number.isFinite(cost))) throw invalidOption(`${at}cost`, cost, 'a finite number > 0, or a function of the request')
    if (cost > limit) throw invalidOption(`${at}cost`, cost, `at most the limit, ${limit}; with it every request would be refused`)
  } else if (cost !== undefined && typeof cost !== 'function') {
    throw invalidOption(`${at}cost`, cost, 'a finite number > 0, or a function of the request')
  }
  return Object.freeze({
    name,
    limit,
    interval,
    spans,
    ...parseCooldown(options.cooldown, `${at}cooldown`),
    window,
    buckets,
    reopen,
    enforcement,
    degraded: oneOf<Degraded>(`${at}degraded`, options.degraded, ['share', 'published', 'open', 'closed']),
    strict,
    dryRun: bool(`${at}dryRun`, options.dryRun),
    id: `v${LAYOUT}:${window}${sliding ? buckets : ''}:${enforcement}:${interval}:${name}`,
  })
}

function parseCooldown(given: unknown, option: string): Pick<Policy, 'cooldown' | 'cooldownGrowth'> {
  if (typeof given !== 'object' || given === null) {
    return { cooldown: given === undefined ? 0 : parseDuration(given, option, 0), cooldownGrowth: undefined }
  }
  for (const name of Object.keys(given)) {
    if (!['base', 'factor', 'max', 'memory'].includes(name)) {
      throw new WeirError('WEIR_UNKNOWN_OPTION', `Unknown option "${option}.${name}". A growing cooldown has: base, factor, max, memory.`)
    }
  }
  const { base, factor = 2, max, memory } = given as Partial<GrowingCooldown>
  const cooldown = parseDuration(base, `${option}.base`, 1)
  if (typeof factor !== 'number' || !(factor > 1 && factor <= 100)) {
    throw invalidOption(`${option}.factor`, factor, 'a number greater than 1 and at most 100')
  }
  const most = parseDuration(max, `${option}.max`, cooldown)
  const remembered = memory === undefined ? most : parseDuration(memory, `${option}.memory`, 1)
  return { cooldown, cooldownGrowth: Object.freeze({ factor, max: most, memory: remembered }) }
}

/**
 * Checks and completes a throttler's policies.
 *
 * @throws WeirError as `parsePolicy`, and `WEIR_DUPLICATE_POLICY`
 */
export function parsePolicies<Name extends string>(list: readonly PolicyOptions<never, Name>[]): readonly Policy<Name>[] {
  if (list === undefined) {
    throw new WeirError('WEIR_MISSING_OPTION', 'Option "policies" is missing; give e.g. policies: [{ limit: 100, interval: "1m" }].')
  }
  if (!Array.isArray(list) || list.length === 0) {
    throw invalidOption('policies', list, 'a list of at least one policy')
  }
  const names = new Set<string>()
  const policies = list.map((options: PolicyOptions<never, Name>, index) =>
    parsePolicy<Name>(options, list.length > 1 ? `policies[${index}].` : ''),
  )
  for (const { name } of policies) {
    if (names.has(name)) {
      throw new WeirError('WEIR_DUPLICATE_POLICY', `Two policies are named ${show(name)}; give each a "name" of its own.`)
    }
    names.add(name)
  }
  return Object.freeze(policies)
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
