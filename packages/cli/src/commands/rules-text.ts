import type { CheckedRules } from '@weir/core/rules'
import type { Difference } from '../rules/differences.ts'
import type { Output } from '../terminal/output.ts'
import { count, plural, safeText } from '../terminal/text.ts'

/** A version, and the known facts about its change. */
export interface VersionReport {
  readonly version: number
  readonly at: string | undefined
  readonly by: string | undefined
  readonly why: string | undefined
  readonly policies: number
  readonly overrides: number
}

export function versionReport({ version, change, policies, overrides }: CheckedRules<never>): VersionReport {
  return { version, at: change?.at, by: change?.by, why: change?.why, policies: policies.length, overrides: overrides.length }
}

/** A text such as `version 7 (2026-11-23T22:00:00Z, alice: incident 42)`. */
export function versionText({ version, at, by, why }: VersionReport): string {
  const who = [at, by].filter((part) => part !== undefined).join(', ')
  const known = [who, why].filter((part) => part !== undefined && part !== '').join(': ')
  return `version ${version}${known === '' ? '' : ` (${safeText(known, 300)})`}`
}

/** Prints each difference on its own line. */
export function showDifferences(differences: readonly Difference[], out: Output): void {
  const { green, red, yellow } = out.colors
  for (const { kind, path, before, after } of differences) {
    const where = safeText(path, 200)
    if (kind === 'added') out.line(green(`+ ${where}: ${valueText(after)}`))
    else if (kind === 'removed') out.line(red(`- ${where}: ${valueText(before)}`))
    else out.line(yellow(`~ ${where}: ${valueText(before)} → ${valueText(after)}`))
  }
}

/** The contents of a document, in one line. */
export function contentsText({ policies, overrides, next }: CheckedRules<never>): string {
  const noun = policies.length === 1 ? 'policy' : 'policies'
  const some = overrides.length === 0 ? '' : `, ${plural(overrides.length, 'override')}`
  return `${count(policies.length)} ${noun}${some}${next === undefined ? '' : ', candidate rules'}`
}

function valueText(value: unknown): string {
  return safeText(JSON.stringify(value) ?? '', 200)
}
