import { type CheckedRules, parseRules } from '@weir/core/rules'
import * as yaml from 'yaml'
import { checkText, type StandIn, textIn } from './read-rules.ts'

/** A valid document: its text, its parsed value, and its checked rules. */
export interface Document {
  readonly text: string
  readonly value: unknown
  readonly rules: CheckedRules<never>
}

/** Replaces the functions that a document names, because only the application has them. */
const GIVEN: StandIn = (kind) => (kind === 'algorithms' ? undefined : () => undefined)

/** @throws RulesError if the document is invalid */
export function documentOf(text: string): Document {
  const rules = checkText<never>(text, GIVEN)
  return { text, value: parseRules(text, { yaml }).value, rules }
}

/**
 * The document in a file.
 *
 * @throws UsageError if the file can't be read, RulesError if the document is invalid
 */
export async function documentIn(file: string): Promise<Document> {
  return documentOf(await textIn(file))
}

/** The same rules with another version. The rest of the text stays, including comments in YAML. */
export function asVersion(text: string, version: number, change: Readonly<Record<string, string>>): string {
  // A byte order mark counts as a blank, for the pattern and for `trim`.
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
