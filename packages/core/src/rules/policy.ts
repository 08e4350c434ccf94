import { fixedWindow } from '../algorithms/fixed-window/index.ts'
import { type EscalatingOptions, escalating } from '../decide/escalating.ts'
import type { PlannedPolicyOptions } from '../decide/plans.ts'
import type { AnyPolicyOptions } from '../decide/policy.ts'
import { paths } from '../http/request/paths.ts'
import { type CalendarUnit, calendar } from '../options/calendar.ts'
import { invalidOption } from '../report/errors.ts'
import { BUILT_IN_KEYS, type Named } from './named.ts'
import type { Path, Problems } from './problems.ts'

/**
 * The most plans of a policy, path patterns of a `match`, and parts of a `key`. Each costs time with each request, or when rules change.
 */
const MOST_PARTS = 1_000

const CANDIDATE = 'Remove it. Candidate policies belong in "next" of the document.'

/** A policy of a document, in the form of a policy in code. */
export type MadePolicy<Req = unknown> = AnyPolicyOptions<Req> | PlannedPolicyOptions<Req>

/** Makes policies from the data of a document. Options that need no conversion are checked later, with all options of the policy. */
export class PolicyMaker<Req> {
  readonly #named: Named
  readonly #problems: Problems

  constructor(named: Named, problems: Problems) {
    this.#named = named
    this.#problems = problems
  }

  /** Returns undefined if something is wrong with the policy. */
  make(given: Readonly<Record<string, unknown>>, path: Path): MadePolicy<Req> | undefined {
    const before = this.#problems.list.length
    for (const option of ['plans', 'match', 'key'] as const) {
      const parts = countOf(given[option])
      if (parts > MOST_PARTS) this.#problems.add([...path, option], `It has ${parts} entries. Use at most ${MOST_PARTS}.`)
    }
    // In code, `candidate` makes a policy a candidate. A document has `next` for candidates.
    if ('candidate' in given) this.#problems.add([...path, 'candidate'], CANDIDATE)
    if (this.#problems.list.length > before) return undefined
    const made: Record<string, unknown> = { ...given }
    const turn = (option: string, into: (value: unknown) => unknown, base: Path = []): void => {
      if (made[option] !== undefined) made[option] = this.#problems.try([...path, ...base], () => into(made[option]))
    }
    turn('algorithm', (value) => this.#algorithm(value), ['algorithm'])
    turn('interval', intervalOf, ['interval'])
    turn('cooldown', (value) => (isObject(value) ? escalating(value as unknown as EscalatingOptions) : value), ['cooldown'])
    turn('key', (value) => this.#key(value))
    turn('match', (value) => this.#match(value), ['match'])
    for (const [option, kind] of [
      ['cost', 'costs'],
      ['limit', 'limits'],
    ] as const)
      turn(option, (value) => (typeof value === 'string' ? this.#named.find(kind, value, option) : value))
    turn('plan', (value) => (typeof value === 'string' ? this.#named.find('plans', value, 'plan') : value))
    // Durations begin with a digit. A text that begins with a sign or a dot is rejected as a duration.
    turn('delay', (value) => (typeof value === 'string' && /^[A-Za-z]/.test(value) ? this.#named.find('delays', value, 'delay') : value))
    turn('plans', plansOf, ['plans'])
    return this.#problems.list.length > before ? undefined : (made as unknown as MadePolicy<Req>)
  }

  #algorithm(given: unknown): unknown {
    const { name, ...options } = typeof given === 'string' ? { name: given } : isObject(given) ? given : {}
    if (typeof name !== 'string') {
      throw invalidOption(
        'algorithm',
        given,
        'the name of an algorithm, or an object with its name and options such as { "name": "tokenBucket", "burst": 20 }',
      )
    }
    const make =
      name === 'fixedWindow' ? fixedWindow : this.#named.find('algorithms', name, typeof given === 'string' ? 'algorithm' : 'name')
    return typeof given === 'string' ? make() : make(options as never)
  }

  #key(given: unknown): unknown {
    const source = (one: unknown) => (typeof one === 'string' && !BUILT_IN_KEYS.includes(one) ? this.#named.find('keys', one, 'key') : one)
    return Array.isArray(given) ? given.map(source) : source(given)
  }

  #match(given: unknown): unknown {
    if (typeof given === 'string') return given.includes('/') ? paths(given) : this.#named.find('matches', given, 'match')
    if (Array.isArray(given) && given.length > 0 && given.every((one) => typeof one === 'string')) return paths(...given)
    throw invalidOption('match', given, 'a path pattern such as "POST /login", a list of them, or the name of a function')
  }
}

function intervalOf(given: unknown): unknown {
  if (!isObject(given)) return given
  const { calendar: unit, ...options } = given
  return calendar(unit as CalendarUnit, options)
}

function plansOf(given: unknown): unknown {
  if (!isObject(given)) return given
  const plans = Object.entries(given).map(([plan, own]) => [
    plan,
    isObject(own) && own.interval !== undefined ? { ...own, interval: intervalOf(own.interval) } : own,
  ])
  return Object.fromEntries(plans)
}

function countOf(given: unknown): number {
  return typeof given === 'object' && given !== null ? Object.keys(given).length : 1
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
