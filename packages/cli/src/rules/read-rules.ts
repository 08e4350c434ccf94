import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { concurrency, leakyBucket, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
import { type CheckedRules, checkRules, parseRules } from '@weir/core/rules'
import * as yaml from 'yaml'
import { UsageError } from '../terminal/usage-error.ts'

/** What a function that a document names becomes, where there is no application that has it. */
export type StandIn = NonNullable<NonNullable<Parameters<typeof checkRules>[1]>['standIn']>

const ALGORITHMS = { slidingWindow, slidingCounter, slidingLog, tokenBucket, leakyBucket, concurrency } as const

/**
 * Reads a document of rules from a file.
 *
 * @throws UsageError when there is no such file; RulesError when it can't be used
 */
export async function readRules<Req>(file: string, standIn: StandIn): Promise<CheckedRules<Req>> {
  const path = pathOf(file)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageError(`Can't read the rules "${file}": ${code === 'ENOENT' ? 'there is no such file' : message}.`)
  }
  return checkText(text, standIn)
}

/** @throws RulesError when the document can't be used */
export function checkText<Req>(text: string, standIn: StandIn): CheckedRules<Req> {
  return checkRules<Req>(parseRules(text, { yaml }), { algorithms: ALGORITHMS, standIn })
}

/**
 * A file by its path, on Windows too, or by its `file:` URL.
 *
 * @throws UsageError for a URL of no file of this machine
 */
export function pathOf(file: string): string {
  if (!file.startsWith('file:')) return file
  try {
    return fileURLToPath(file)
  } catch {
    throw new UsageError(`"${file}" is no URL of a file; it must be such as file:///etc/rules.yaml.`)
  }
}
