import { pageOf, withPage } from './page.ts'
import { kindOf, printable, reasonOf, show } from './show.ts'

export { show }

/** The cause of an error or a warning, as a stable code. `@weir/core/docs/reference/errors.md` explains each. */
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
  | 'WEIR_WARN_RESERVATION_EXPIRED'
  | 'WEIR_WARN_STORE_SLOW'
  | 'WEIR_NOT_LOADED'
  | 'WEIR_THROTTLED'
  | 'WEIR_WARN_SHORT_DURATION'

/** Longest message of an error, in characters. It may contain a list of policies, or the message of a foreign error. */
const LONGEST = 2_000

/**
 * Every error that Weir throws or reports. `code` is stable, while the message is for people and may change. The message is safe to print,
 * whatever values it contains, and ends with `page`. It is one line, except for a missing `key`: there each choice has its own line.
 */
export class WeirError extends Error {
  override readonly name: string = 'WeirError'
  readonly code: WeirErrorCode
  /** The page that explains the code and its remedy. It comes with the package. */
  readonly page: string

  /** @param further lines below the message, with only Weir's own words */
  constructor(code: WeirErrorCode, message: string, options?: ErrorOptions, further = '') {
    const text = printable(message, LONGEST) + further
    // Frameworks send this message to clients, so it names no page.
    super(code === 'WEIR_THROTTLED' ? text : withPage(text, code), options)
    this.code = code
    this.page = pageOf(code)
  }
}

/** Warns the process. The message ends with the page of its code: the code of an error, or one of a few that are never thrown. */
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
  process.emitWarning(withPage(printable(message, LONGEST), code), { type: 'WeirWarning', code })
}

/**
 * An option whose value can't be used.
 *
 * @param allowed follows "Use"
 * @param next further sentences
 */
export function invalidOption(option: string, given: unknown, allowed: string, next = ''): WeirError {
  return new WeirError('WEIR_INVALID_OPTION', `Option "${option}" is ${show(given)}. Use ${allowed}.${next && ` ${next}`}`)
}

/** An option that can't be combined with others. @param why a sentence's end */
export function excessOption(option: string, why: string): WeirError {
  return new WeirError('WEIR_INVALID_OPTION', `Remove "${option}": ${why}.`)
}

/** @param add whole sentences with the value to write */
export function missingOption(option: string, add: string): WeirError {
  return new WeirError('WEIR_MISSING_OPTION', `Option "${option}" is missing. ${add}`)
}

/** An error for a key that is no string. An object may be a request with secrets, so only its kind is shown. */
export function invalidKey(key: unknown): WeirError {
  const isObject = typeof key === 'object' && key !== null
  const next = isObject
    ? 'Pass a string such as req.ip. To limit requests, use an adapter or createGuard().'
    : `Pass a string${key === undefined || key === null ? '' : ', e.g. String(id)'}.`
  return new WeirError('WEIR_INVALID_KEY', `A key must be a string. It is ${isObject ? kindOf(key) : show(key)}. ${next}`)
}

/** A sentence with the import of a function of Weir that an option needs. */
export function importOf(name: string): string {
  return `Import it: import { ${name} } from '@weir/express', or from your adapter's package.`
}

/** An error for a part that was closed on its own, such as the connection to a store. */
export function closedPart(what: string): WeirError {
  return new WeirError('WEIR_CLOSED', `${what} is closed. Make another one to use it again.`)
}

/** An error for a store that can't load a part of its code yet. The store tries again with each sync, and warns once. */
export function codeNotLoaded(store: string, cause: unknown): WeirError {
  const what = `Code of the ${store} store could not be loaded (${reasonOf(cause)})`
  const next = 'Weir tries again. Until it succeeds, counts that need it are not synced. Check that the files of the package are readable.'
  return new WeirError('WEIR_NOT_LOADED', `${what}. ${next}`, { cause })
}

export function closedError(): WeirError {
  return new WeirError('WEIR_CLOSED', 'The throttler was used after close(). Close it after the server has stopped accepting requests.')
}

/** Whether a thrown value is an error of Weir. It never throws, although `instanceof` does for some proxies. */
export function isWeirError(error: unknown): error is WeirError {
  try {
    return error instanceof WeirError
  } catch {
    return false
  }
}
