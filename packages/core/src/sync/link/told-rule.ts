import { countsAtStore } from '../../decide/coordination.ts'
import type { Policy, PolicyOptions } from '../../decide/policy.ts'
import { isPathMatch } from '../../decide/request-options.ts'
import type { Coordinated } from '../../throttler/coordinator.ts'

/** Longest text, in UTF-16 code units: about eighty rules. Rules beyond it are not compared. */
export const LONGEST_RULES = 8_192

/**
 * One rule as processes send it: name, interval, algorithm, coordination, digests of key and match. Then the numbers that a rolling change
 * may change: limit, cooldown, spans, and further numbers by name. The cost of requests is not part of it. Times are in milliseconds,
 * except calendar intervals, which are named.
 */
export type ToldRule = readonly [
  name: string,
  interval: number | string,
  algorithm: string,
  coordination: string,
  key: string,
  match: string,
  limit: number,
  cooldown: number,
  spans: number,
  further: Readonly<Record<string, number>>,
]

/** The digest of a function, because functions of two processes can't be compared. */
export const FUNCTION = 'a function'

/** The rules of a throttler that processes compare. */
export function toldRules({ limiters, rules }: Coordinated): ToldRule[] {
  return limiters.flatMap(({ policy }, at) => {
    const { name, interval, calendar, algorithm, coordination, limit, cooldown, spans } = policy
    if (!countsAtStore(policy)) return []
    const { key, match } = rules[at] as PolicyOptions<never>
    return [
      [
        name,
        calendar?.id ?? interval,
        algorithm.id,
        coordination,
        key === undefined ? '' : digest(key),
        match === undefined ? '' : digest(match),
        limit,
        cooldown,
        spans,
        furtherOf(policy),
      ],
    ]
  })
}

/** Numbers of a rule that have no field of their own. JSON has no infinite numbers, so an infinite number is left out. */
function furtherOf({ algorithm, limit, cooldownGrowth }: Policy): Readonly<Record<string, number>> {
  const { factor, max, memory } = cooldownGrowth ?? {}
  const all = { ...algorithm.settings?.(limit), 'cooldown.factor': factor, 'cooldown.max': max, 'cooldown.memory': memory }
  return Object.fromEntries(Object.entries(all).filter((one): one is [string, number] => Number.isFinite(one[1])))
}

/** The text of the rules that a heartbeat carries. */
export function textOf(rules: readonly ToldRule[]): string {
  const parts: string[] = []
  let room = LONGEST_RULES
  for (const rule of rules) {
    const part = JSON.stringify(rule)
    room -= part.length + 2
    if (room > 0) parts.push(part)
  }
  return `[${parts.join(',')}]`
}

/** FNV-1a of a value's JSON, the same in every process. Functions inside are left out. */
function digest(value: unknown): string {
  if (typeof value === 'function') return FUNCTION
  // For a plan its declaration matters, not the group object that its policies share. For patterns their meaning matters, not their
  // spelling.
  const text = JSON.stringify(value, (name, part: unknown) => (name === 'group' ? undefined : isPathMatch(part) ? part.id : part))
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0).toString(36)
}
