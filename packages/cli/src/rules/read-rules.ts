import { fileURLToPath } from 'node:url'
import { algorithms } from '@weir/core'
import { type CheckedRules, checkRules, fileRules, parseRules } from '@weir/core/rules'
import * as yaml from 'yaml'
import { UsageError } from '../terminal/usage-error.ts'

/** Replaces a function that a document names, because the command line has no application that defines it. */
export type StandIn = NonNullable<NonNullable<Parameters<typeof checkRules>[1]>['standIn']>

/**
 * The text of a file of rules.
 *
 * @throws UsageError if the file is not a regular file, or is larger than 8,000,000 bytes
 */
export async function textIn(file: string): Promise<string> {
  try {
    return (await fileRules(pathOf(file)).read(new AbortController().signal)) as string
  } catch (error) {
    if (!(error instanceof Error) || error instanceof UsageError) throw error
    const why = 'code' in error && error.code === 'ENOENT' ? 'there is no such file' : error.message
    throw new UsageError(`Can't read the rules "${file}": ${why}.`)
  }
}

/** @throws RulesError if the document is invalid */
export function checkText<Req>(text: string, standIn: StandIn): CheckedRules<Req> {
  return checkRules<Req>(parseRules(text, { yaml }), { algorithms, standIn })
}

/**
 * The path of a file, from a path (on Windows too) or a `file:` URL.
 *
 * @throws UsageError for a URL that is no file of this machine
 */
export function pathOf(file: string): string {
  if (!file.startsWith('file:')) return file
  try {
    return fileURLToPath(file)
  } catch {
    throw new UsageError(`"${file}" is no URL of a file. Use one such as file:///etc/rules.yaml.`)
  }
}
