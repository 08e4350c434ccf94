import type { Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import type { FollowedRules, HeldRules, RulesVersion } from '@weir/core/inspect'
import type { PolicyRule, RulesFound } from './protocol.ts'

/** Number of overrides in one answer. */
const ROWS = 25
/** Milliseconds for which the list of versions is kept, unless the rules change. */
const FRESH = 10_000
/** Longest text of an option, in UTF-16 units. */
const LONGEST = 300

/** The rules that this process follows, for the pages that show them. */
export class Rules {
  readonly #throttler: Throttler<string, never>
  #versions: { readonly of: string; readonly until: number; readonly list: Promise<readonly RulesVersion[]> } | undefined

  constructor(throttler: Throttler<string, never>) {
    this.#throttler = throttler
  }

  /**
   * @param search part of a policy or key
   * @param from index of an override on the page to return
   */
  async find(search: string, from: number): Promise<RulesFound> {
    const { followed } = adapterOf(this.#throttler).inspected
    if (followed === undefined) return { source: undefined, versions: [], policies: [], overrides: none(from), next: undefined }
    const { source, held } = followed
    return {
      source,
      versions: await this.#list(followed),
      policies: (held?.policies ?? []).map(ruleOf),
      overrides: held === undefined ? none(from) : found(held, search, from),
      next: held?.next === undefined ? undefined : { policies: held.next.policies.map(ruleOf), overrides: open(held.next).length },
    }
  }

  #list(followed: FollowedRules): Promise<readonly RulesVersion[]> {
    const { digest, rejected } = followed.status
    const of = JSON.stringify([digest, rejected])
    const now = Date.now()
    const known = this.#versions
    if (known !== undefined && known.of === of && now < known.until) return known.list
    const list = followed.versions()
    this.#versions = { of, until: now + FRESH, list }
    return list
  }
}

function none(from: number): RulesFound['overrides'] {
  return { total: 0, found: 0, from, rows: [] }
}

function open({ overrides }: HeldRules): HeldRules['overrides'] {
  const now = Date.now()
  return overrides.filter(({ until }) => until > now)
}

function found(held: HeldRules, search: string, from: number): RulesFound['overrides'] {
  const all = open(held)
  const text = search.toLowerCase()
  const matching =
    text === '' ? all : all.filter(({ policy, key }) => key.toLowerCase().includes(text) || policy.toLowerCase().includes(text))
  // Returns whole pages. If overrides have ended since, the last page replaces a page beyond the end.
  const first = Math.floor(Math.min(from, Math.max(0, matching.length - 1)) / ROWS) * ROWS
  const rows = matching
    .slice(first, first + ROWS)
    .map(({ policy, key, limit, until }) => ({ policy, key, limit, until: Number.isFinite(until) ? until : null }))
  return { total: all.length, found: matching.length, from: first, rows }
}

/** A policy as it was written, with its options as text. */
function ruleOf(policy: unknown): PolicyRule {
  const { name = 'default', ...options } = policy as Readonly<Record<string, unknown>>
  return {
    name: String(name),
    options: Object.entries(options).map(([option, value]) => [option, textOf(value).slice(0, LONGEST)] as const),
  }
}

/** Writes `{ name: tokenBucket, burst: 20 }` as `tokenBucket, burst 20`. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  if (typeof value !== 'object' || value === null) return String(value)
  return Object.entries(value)
    .map(([name, one]) => (name === 'name' ? textOf(one) : `${name} ${textOf(one)}`))
    .join(', ')
}
