import { type Coordination, createThrottler, memoryStore } from '@weir/core'
import { InvalidArgumentError } from 'commander'
import { type ClusterOptions, coordinated, hasSlots, type LogPolicy } from '../replay/cluster.ts'
import { logFunctions, type StoodIn } from '../rules/log-functions.ts'
import { checkText, textIn } from '../rules/read-rules.ts'
import { UsageError } from '../terminal/usage-error.ts'

/** Limits to try for a policy, of `--sweep`. */
export interface Sweep {
  readonly policy: string
  readonly limits: readonly number[]
}

/** The options that choose the rules of a plan. */
export interface RulesOptions {
  readonly rules: string
  readonly against?: string
  readonly next?: true
  readonly sweep?: Sweep
  readonly coordination?: Coordination
}

/** The most limits of a sweep, because each is a replay with memory of its own. */
const MOST_LIMITS = 20

/** Reads a text such as `client.limit=30,60,120`. */
export function sweepOption(text: string): Sweep {
  const [, policy = '', list = ''] = /^(.+)\.limit=(\d+(?:,\d+)*)$/.exec(text) ?? []
  const limits = [...new Set(list.split(',').map(Number))]
  if (policy === '' || limits.length > MOST_LIMITS || limits.some((limit) => !Number.isSafeInteger(limit)))
    throw new InvalidArgumentError(`Use a policy and at most ${MOST_LIMITS} limits, such as client.limit=30,60,120.`)
  return { policy, limits: limits.sort((one, other) => one - other) }
}

/** The rules of a document: the current ones, or the ones under `next`. */
export interface Rules {
  readonly file: string
  readonly version: number
  readonly policies: readonly LogPolicy[]
  readonly overrides: ClusterOptions['overrides']
  readonly notes: readonly string[]
  /** The limit of `--sweep`. */
  readonly limit?: number
}

/** The rules, and the rules to compare them with, if there are any. With `--sweep` the rules with each limit. */
export async function documentsOf(options: RulesOptions): Promise<readonly Rules[]> {
  const { rules: file, against, next, sweep } = options
  if (sweep !== undefined) {
    if (against !== undefined || next !== undefined)
      throw new UsageError('Limits of --sweep are compared with each other. Remove --against and --next.')
    return swept(await rulesOf(file, 'running', options), sweep)
  }
  if (next === undefined) {
    const mine = await rulesOf(file, 'running', options)
    return against === undefined ? [mine] : [mine, await rulesOf(against, 'running', options)]
  }
  if (against !== undefined) throw new UsageError('Rules can be compared with one other document. Use --next or --against, not both.')
  return [await rulesOf(file, 'next', options), await rulesOf(file, 'running', options)]
}

async function rulesOf(file: string, part: 'running' | 'next', { next, coordination }: RulesOptions): Promise<Rules> {
  const stoodIn: StoodIn[] = []
  const document = checkText<never>(await textIn(file), logFunctions(stoodIn))
  const set = part === 'next' ? document.next : document
  if (set === undefined) throw new UsageError(`${JSON.stringify(file)} has no candidate rules. Add them as "next", or remove --next.`)
  const notes = stoodIn.map(({ kind, name }) => `The field "${name}" of the log stands in for the function "${name}" of "${kind}".`)
  if (document.next !== undefined && next === undefined)
    notes.push('The candidate rules, "next", are left out. Pass --next to compare them with the current ones.')
  const policies = (set.policies as unknown as readonly LogPolicy[]).map((policy) => {
    const made = coordination === undefined ? policy : coordinated(policy, coordination)
    if (made === policy && coordination !== undefined && hasSlots(policy))
      notes.push(`The policy ${nameOf(policy)} keeps its coordination, because concurrency supports only "leased" and "local".`)
    return made
  })
  checkPolicies(policies)
  return { file: part === 'next' ? `${file}, next` : file, version: document.version, policies, overrides: set.overrides, notes }
}

/** The rules once for each limit of the policy. @throws UsageError if the policy has no limit */
function swept(rules: Rules, { policy: name, limits }: Sweep): readonly Rules[] {
  const names = rules.policies.filter((policy) => 'limit' in policy).map(nameOf)
  if (names.length === 0) throw new UsageError('No policy of the rules has a limit of its own, which --sweep needs.')
  if (!names.includes(JSON.stringify(name)))
    throw new UsageError(`There is no policy ${JSON.stringify(name)} with a limit in the rules. Use ${names.join(' or ')} in --sweep.`)
  return limits.map((limit) => {
    const policies = rules.policies.map((policy) => ((policy.name ?? 'default') === name ? ({ ...policy, limit } as LogPolicy) : policy))
    checkPolicies(policies)
    return { ...rules, policies, limit }
  })
}

/** Reports invalid policies now instead of at the first request. */
function checkPolicies(policies: readonly LogPolicy[]): void {
  createThrottler({ policies, store: memoryStore() })
}

export function nameOf({ name = 'default' }: LogPolicy): string {
  return JSON.stringify(name)
}
