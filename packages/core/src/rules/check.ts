import { parsePolicy } from '../decide/check-policy.ts'
import { expandPlans } from '../decide/plans.ts'
import type { PolicyOptions } from '../decide/policy.ts'
import { nearest } from '../report/did-you-mean.ts'
import { show } from '../report/errors.ts'
import type { NextRules, RulesChange, RulesDocument } from './document.ts'
import { checkNamed, Named, type NamedFunctions, type NamedKind } from './named.ts'
import { checkOverrides, type Override, timeOf } from './overrides.ts'
import type { ParsedRules } from './parse.ts'
import { isObject, type MadePolicy, PolicyMaker } from './policy.ts'
import { type Path, Problems, RulesError } from './problems.ts'

/** The most policies in one document, because every request is checked against each of them. */
const MOST_POLICIES = 100
const DOCUMENT: readonly (keyof RulesDocument)[] = ['$schema', 'version', 'change', 'policies', 'overrides', 'next']
const KEY_MISSING =
  'Option "key" is missing. Choose what requests are counted by: "ip" (each client address), { "header": "x-api-key" } (each value of a ' +
  'header), the name of a function in "keys", "route" or "all" (all clients share the limit), or a list of these.'
const CHANGE: Readonly<Record<keyof RulesChange, number>> = { at: 40, by: 200, why: 1_000 }
const NEXT: readonly (keyof NextRules)[] = ['policies', 'overrides']

/** Options of `checkRules`. */
export interface CheckRulesOptions<Req = unknown> extends NamedFunctions<Req> {
  /**
   * Checks the rules for a throttler with a store. Without one every policy is `'local'`.
   *
   * @default true
   */
  readonly store?: boolean
  /**
   * Makes functions that the document names and the other options lack, for programs that check documents without the application.
   *
   * @default none: an unknown name is a problem
   */
  readonly standIn?: (kind: NamedKind, name: string) => unknown
}

/** Policies for `createThrottler` and `update`, and the limits of single keys. */
export interface RuleSet<Req = unknown> {
  readonly policies: readonly MadePolicy<Req>[]
  readonly overrides: readonly Override[]
}

/** A valid document. */
export interface CheckedRules<Req = unknown> extends RuleSet<Req> {
  readonly version: number
  readonly change: RulesChange | undefined
  readonly next: RuleSet<Req> | undefined
}

/**
 * Checks a whole document. Its policies pass the same checks as policies in code.
 *
 * @param rules the result of `parseRules`, or `{ value }` for a document that is no text
 * @throws RulesError with each problem and its place, at most 10; WeirError `WEIR_INVALID_OPTION` for the options
 *
 * @example
 * const { policies } = checkRules(parseRules(text, { yaml }), { algorithms: { tokenBucket }, keys: { tenant: (req) => req.tenant } })
 */
export function checkRules<Req = unknown>(
  rules: Pick<ParsedRules, 'value'> & Partial<ParsedRules>,
  options: CheckRulesOptions<Req> = {},
): CheckedRules<Req> {
  checkNamed(options as NamedFunctions<never>)
  const problems = new Problems((path) => rules.placeOf?.(path))
  const document = rules.value
  if (!isObject(document)) {
    problems.add(
      [],
      `It is ${show(document)}. Use an object such as { "version": 1, "policies": [{ "key": "ip", "limit": 100, "interval": "1m" }] }.`,
    )
    throw new RulesError(problems.list)
  }
  checkMembers(document, DOCUMENT, 'A document', [], problems)
  const { version, change } = document
  const known = Number.isSafeInteger(version) && (version as number) >= 1 ? (version as number) : undefined
  if (known === undefined) problems.add(['version'], `It is ${show(version)}. Use a whole number from 1 on.`)
  checkChange(change, problems)
  const named = new Named(options as NamedFunctions<never>, options.standIn)
  const store = options.store !== false
  const running = checkSet<Req>(document, [], named, store, problems)
  const next = document.next === undefined ? undefined : checkNext<Req>(document.next, named, store, problems)
  if (known === undefined || problems.list.length > 0) throw new RulesError(problems.list, known)
  return { ...running, version: known, change: change as RulesChange | undefined, next }
}

function checkNext<Req>(given: unknown, named: Named, store: boolean, problems: Problems): RuleSet<Req> {
  if (!isObject(given)) {
    problems.add(['next'], `It is ${show(given)}. Use an object with "policies", and "overrides" if there are some.`)
    return { policies: [], overrides: [] }
  }
  checkMembers(given, NEXT, 'Rules to come', ['next'], problems)
  return checkSet(given, ['next'], named, store, problems)
}

function checkSet<Req>(
  given: Readonly<Record<string, unknown>>,
  path: Path,
  named: Named,
  store: boolean,
  problems: Problems,
): RuleSet<Req> {
  const { policies: list, overrides } = given
  const at: Path = [...path, 'policies']
  if (!Array.isArray(list) || list.length === 0 || list.length > MOST_POLICIES) {
    problems.add(at, `It is ${show(list)}. Use a list of 1 to ${MOST_POLICIES} policies.`)
    return { policies: [], overrides: [] }
  }
  const maker = new PolicyMaker<Req>(named, problems)
  const names = new Set<string>()
  const groups = new Set<string>()
  const policies = (list as readonly unknown[]).flatMap((one, place): readonly MadePolicy<Req>[] => {
    const here: Path = [...at, place]
    if (!isObject(one)) {
      problems.add(here, `It is ${show(one)}. Use an object such as { "key": "ip", "limit": 100, "interval": "1m" }.`)
      return []
    }
    // The name of an invalid policy counts as known, because overrides may contain it.
    groups.add(typeof one.name === 'string' ? one.name : 'default')
    if (one.key === undefined) problems.add([...here, 'key'], KEY_MISSING)
    const made = maker.make(one, here)
    if (made === undefined) return []
    const expanded = problems.try(here, () => expandPlans([made]))
    for (const each of expanded ?? []) {
      const name = each.name ?? 'default'
      if (problems.try(here, () => parsePolicy(each as PolicyOptions<never>, store)) === undefined) break
      if (names.has(name)) problems.add([...here, 'name'], `Two policies are named ${show(name)}. Give each a different "name".`)
      names.add(name)
    }
    return [made]
  })
  return { policies, overrides: checkOverrides(overrides, new Set([...groups, ...names]), [...path, 'overrides'], problems) }
}

function checkMembers(given: object, known: readonly string[], what: string, path: Path, problems: Problems): void {
  for (const name of Object.keys(given)) {
    if (problems.full) return
    if (known.includes(name)) continue
    const near = nearest(name, known)
    const meant = near === undefined ? '' : ` Did you mean "${near}"?`
    problems.add([...path, name], `Unknown option ${show(name)}.${meant} ${what} has: ${known.join(', ')}.`)
  }
}

function checkChange(change: unknown, problems: Problems): void {
  if (change === undefined) return
  if (!isObject(change)) {
    problems.add(['change'], `It is ${show(change)}. Use an object with "at", "by" and "why", or some of them.`)
    return
  }
  checkMembers(change, Object.keys(CHANGE), 'A change', ['change'], problems)
  for (const [name, longest] of Object.entries(CHANGE)) {
    const value = change[name]
    if (value === undefined) continue
    if (typeof value !== 'string' || value.length > longest || value === '')
      problems.add(['change', name], `It is ${show(value)}. Use a string of 1 to ${longest} characters.`)
    else if (name === 'at' && timeOf(value) === undefined)
      problems.add(['change', name], `It is ${show(value)}. Use a time such as "2026-11-23T22:00:00Z".`)
  }
}
