import { fileRules, type RulesSource } from '@weir/core/rules'
import { redisRules } from '@weir/redis'
import { UsageError } from '../terminal/usage-error.ts'
import { pathOf } from './read-rules.ts'

/** A source of rules, and what ends its connections. */
export interface OpenSource extends Pick<RulesSource, 'name' | 'replace' | 'history'> {
  /** The text that it holds; undefined for none. */
  read(): Promise<string | undefined>
  close(): void
}

/** Where rules are, as the options say. */
export interface SourceOptions {
  /** `redis:` or `rediss:` URL, the path of a file, or its `file:` URL. */
  readonly source: string
  readonly namespace: string
  readonly name: string
}

/** Milliseconds. */
const TIMEOUT = 5_000

/** @throws UsageError for what is no source; WeirError for options that can't be used */
export function openSource({ source: address, namespace, name }: SourceOptions): OpenSource {
  if (/^rediss?:\/\//.test(address)) {
    const rules = redisRules(address, { namespace, name, timeout: TIMEOUT })
    return {
      name: rules.name,
      read: () => reached(rules.name, rules.read()),
      replace: (before, text) => reached(rules.name, rules.replace(before, text)),
      history: (most) => reached(rules.name, rules.history(most)),
      close: () => rules.close(),
    }
  }
  // A drive of Windows has one letter.
  if (/^[a-z][a-z0-9+.-]+:/i.test(address) && !address.startsWith('file:'))
    throw new UsageError(`${JSON.stringify(address.split(':', 1)[0])} is no source of rules; it must be redis://…, rediss://… or a file.`)
  const file = fileRules(pathOf(address))
  const { replace } = file
  return {
    name: file.name,
    read: () =>
      reached(
        file.name,
        file.read(AbortSignal.timeout(TIMEOUT)).catch((error: NodeJS.ErrnoException) => {
          if (error.code === 'ENOENT') return undefined
          throw error
        }),
      ),
    ...(replace !== undefined && { replace: (before, text) => reached(file.name, replace(before, text)) }),
    close: () => {},
  }
}

/** @throws UsageError for whatever fails */
async function reached<T>(name: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    const reason = error instanceof Error && error.message !== '' ? error.message : String(error)
    throw new UsageError(`Can't use ${name}: ${reason}`)
  }
}
