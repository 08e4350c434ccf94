import { show, WeirError } from '../../report/errors.ts'
import type { Emitter } from '../../report/events.ts'
import type { Once } from '../../report/once.ts'
import { printable } from '../../report/show.ts'
import type { RulesReport } from '../../store/contract.ts'
import { FUNCTION, type ToldRule } from './told-rule.ts'

/** The process whose rules are compared, and the receivers of warnings and events. */
export interface RuleWatchHost {
  readonly nodeId: string
  readonly emitter: Pick<Emitter, 'has' | 'emit'>
  /** Whether a node id belongs to an earlier throttler of this process, which has changed to the rules of a later one. */
  isFollowing(node: string): boolean
  /** Warns once per code and subject. */
  warn(error: WeirError, subject?: string): void
}

/** Longest id of a process in a message, in characters. */
const LONGEST_NODE = 64

/**
 * Compares the rules of this process with the rules of another process. A different rule under the same name is a warning, once
 * for each name. The same rule with other numbers, such as its limit, is a rolling change, and an event.
 *
 * @param report any value, as the store returned it
 */
export function tellDifferences(own: readonly ToldRule[], report: RulesReport, { warn, emitter }: RuleWatchHost, said: Once): void {
  const node = printable(report.node, LONGEST_NODE)
  for (const theirs of parseRules(report.rules)) {
    const [name] = theirs
    for (const ours of own) {
      if (ours[0] !== name) continue
      const differences = differencesOf(ours, theirs, 1, RULE)
      if (differences.length > 0) {
        const message = `Process ${node} uses different settings for policy ${show(name)}: ${differences.join('; ')}. This is expected during a rolling deploy. Otherwise rename one of them.`
        warn(new WeirError('WEIR_WARN_RULES_DIFFER', message), name)
        continue
      }
      const changes = [...differencesOf(ours, theirs, 1 + RULE.length, ROLLING), ...furtherDifferences(ours[9], theirs[9])]
      if (changes.length === 0 || !emitter.has('peerRuleDiffers') || !said.first(`${name} ${changes.join()}`)) continue
      emitter.emit('peerRuleDiffers', { policy: name, node, changes: changes.join('; ') })
    }
  }
}

/** The fields that make two rules different, and the fields in which they may differ for a while. Both in the order of `ToldRule`. */
const RULE = ['interval', 'algorithm', 'coordination', 'key', 'match'] as const
const ROLLING = ['limit', 'cooldown', 'spans'] as const

function differencesOf(ours: ToldRule, theirs: ToldRule, from: number, options: readonly string[]): string[] {
  return options.flatMap((option, i) => {
    const [here, there] = [ours[from + i] as string | number, theirs[from + i] as string | number]
    if (here === there) return []
    if (option !== 'key' && option !== 'match') return [`"${option}" is ${show(here)} here and ${show(there)} there`]
    return [here === FUNCTION || there === FUNCTION ? `"${option}" is a function at one of them only` : `"${option}" is another one`]
  })
}

function furtherDifferences(ours: ToldRule[9], theirs: ToldRule[9]): string[] {
  // Names come from other processes, so properties that every object inherits don't count.
  const words = (rule: ToldRule[9], name: string): string => (Object.hasOwn(rule, name) ? show(rule[name]) : 'left out')
  return [...new Set([...Object.keys(ours), ...Object.keys(theirs)])]
    .filter((name) => words(ours, name) !== words(theirs, name))
    .map((name) => `"${printable(name, LONGEST_NODE)}" is ${words(ours, name)} here and ${words(theirs, name)} there`)
}

/** The rules in a text. Items that are no rules are left out. */
function parseRules(text: string): ToldRule[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return []
  }
  return Array.isArray(value) ? value.filter(isRule) : []
}

const LONGEST_PART = 128
/** More than any algorithm has. */
const MOST_FURTHER = 20

function isRule(value: unknown): value is ToldRule {
  if (!Array.isArray(value) || value.length !== 10) return false
  const [name, interval, algorithm, coordination, key, match, limit, cooldown, spans, further]: unknown[] = value
  const isText = (part: unknown) => typeof part === 'string' && part.length <= LONGEST_PART
  const isAmount = (part: unknown) => typeof part === 'number' && part >= 0 && Number.isFinite(part)
  if (typeof further !== 'object' || further === null || Object.keys(further).length > MOST_FURTHER) return false
  return (
    [name, algorithm, coordination, key, match].every(isText) &&
    (isText(interval) || isAmount(interval)) &&
    [limit, cooldown, spans, ...Object.values(further)].every(isAmount)
  )
}
