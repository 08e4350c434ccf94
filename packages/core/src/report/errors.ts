import { printable, reasonOf, show } from './show.ts'

export { show }

/** What went wrong, as a stable code. Each is explained in `@weir/core/docs/reference/errors.md`. */
export type WeirErrorCode =
  | 'WEIR_INVALID_OPTION'
  | 'WEIR_UNKNOWN_OPTION'
  | 'WEIR_MISSING_OPTION'
  | 'WEIR_DUPLICATE_POLICY'
  | 'WEIR_UNKNOWN_POLICY'
  | 'WEIR_INVALID_KEY'
  | 'WEIR_WARN_UNBOUNDED_KEY'
  | 'WEIR_WARN_INVALID_COST'
  | 'WEIR_WARN_INVALID_LIMIT'
  | 'WEIR_WARN_CALLBACK_FAILED'
  | 'WEIR_WARN_TRUST_PROXY'
  | 'WEIR_WARN_OPTION_FUNCTION_FAILED'
  | 'WEIR_ASYNC_POLICY'
  | 'WEIR_CLOSED'
  | 'WEIR_NOT_ACQUIRED'
  | 'WEIR_STORE_UNAVAILABLE'
  | 'WEIR_STORE_TIMEOUT'
  | 'WEIR_STORE_REPLY'
  | 'WEIR_WARN_STORE_VALUE'
  | 'WEIR_WARN_QUOTA_LOST'
  | 'WEIR_WARN_RULES_DIFFER'
  | 'WEIR_WARN_POLICY_REPLACED'
  | 'WEIR_RULES_REJECTED'
  | 'WEIR_WARN_RULES_SOURCE'
  | 'WEIR_WARN_SMALL_LIMIT'
  | 'WEIR_WARN_UTC_INTERVAL'
  | 'WEIR_WARN_SLOT_EXPIRED'
  | 'WEIR_WARN_STORE_SLOW'
  | 'WEIR_NOT_LOADED'
  | 'WEIR_THROTTLED'
  | 'WEIR_WARN_SHORT_DURATION'

/** Longest message of an error: a list of policies may be in it, and what others threw. */
const LONGEST = 2_000

/**
 * Every error that Weir throws or reports. `code` is stable; the message is for people and may change. The message is safe to print,
 * whatever was thrown or given. It is one line, except for a missing `key`, whose choices have a line each.
 */
export class WeirError extends Error {
  override readonly name: string = 'WeirError'
  readonly code: WeirErrorCode
  /** Where the code is explained, with what to do: a page that comes with the package. */
  readonly page: string

  /** @param further lines below the message, of Weir's own words only */
  constructor(code: WeirErrorCode, message: string, options?: ErrorOptions, further = '') {
    super(printable(message, LONGEST) + further, options)
    this.code = code
    this.page = pageOf(code)
  }
}

function pageOf(code: string): string {
  return `@weir/core/docs/errors/${code.toLowerCase()}.md`
}

/** Warns the process, and says where to read more. Codes of warnings are those of errors, and a few that are never thrown. */
export function warnProcess(
  code:
    | WeirErrorCode
    | 'WEIR_WARN_LOCAL_ONLY'
    | 'WEIR_WARN_LISTENER_FAILED'
    | 'WEIR_WARN_IPC_MESSAGE'
    | 'WEIR_WARN_FAKE_TIME'
    | 'WEIR_WARN_MANY_THROTTLERS',
  message: string,
): void {
  process.emitWarning(printable(message, LONGEST), {
    type: 'WeirWarning',
    code,
    detail: `See ${pageOf(code)}`,
  })
}

/** An option that can't be used: names the option, what was given and what is allowed. */
export function invalidOption(option: string, given: unknown, allowed: string): WeirError {
  return new WeirError('WEIR_INVALID_OPTION', `Option "${option}" is ${show(given)}; it must be ${allowed}.`)
}

/** For a store that can't load a part of its code yet. The store tries again with each exchange, and warns once. */
export function codeNotLoaded(store: string, cause: unknown): WeirError {
  const what = `Code of the ${store} store could not be loaded (${reasonOf(cause)})`
  return new WeirError('WEIR_NOT_LOADED', `${what}. Until a retry succeeds, counts that need it are not exchanged.`, { cause })
}

export function closedError(): WeirError {
  return new WeirError('WEIR_CLOSED', 'The throttler is closed.')
}
