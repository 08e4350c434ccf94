import { type CheckedRules, parseRules } from '@weir/core/rules'
import * as yaml from 'yaml'
import { checkText, type StandIn, textIn } from './read-rules.ts'

/** A document that holds: as text, as it was written, and as it was checked. */
export interface Document {
  readonly text: string
  readonly value: unknown
  readonly rules: CheckedRules<never>
}

/** Functions that a document names are the application's: it has them. */
const GIVEN: StandIn = (kind) => (kind === 'algorithms' ? undefined : () => undefined)

/** @throws RulesError when it can't be used */
export function documentOf(text: string): Document {
  const rules = checkText<never>(text, GIVEN)
  return { text, value: parseRules(text, { yaml }).value, rules }
}

/**
 * The document in a file.
 *
 * @throws UsageError when it can't be read; RulesError when it can't be used
 */
export async function documentIn(file: string): Promise<Document> {
  return documentOf(await textIn(file))
}

/** The same rules as another version: what is written in the text stays, comments of YAML too. */
export function asVersion(text: string, version: number, change: Readonly<Record<string, string>>): string {
  // A byte order mark is a blank too, for the pattern and for `trim`.
  if (/^\s*\{/.test(text)) {
    const { version: _, change: before, ...rest } = JSON.parse(text.trim()) as Readonly<Record<string, unknown>>
    const { $schema, ...others } = rest
    return `${JSON.stringify({ ...($schema !== undefined && { $schema }), version, change, ...others }, undefined, 2)}\n`
  }
  const document = yaml.parseDocument(text, { version: '1.2', logLevel: 'error', uniqueKeys: false })
  document.set('version', version)
  document.set('change', document.createNode(change, { flow: true }))
  return document.toString()
}
