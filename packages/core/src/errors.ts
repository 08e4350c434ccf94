/** What went wrong, as a stable code. Each is explained in `docs/reference/errors.md`. */
export type WeirErrorCode =
  | 'WEIR_INVALID_OPTION'
  | 'WEIR_UNKNOWN_OPTION'
  | 'WEIR_MISSING_OPTION'
  | 'WEIR_DUPLICATE_POLICY'
  | 'WEIR_UNKNOWN_POLICY'
  | 'WEIR_INVALID_KEY'
  | 'WEIR_RAW_KEY'
  | 'WEIR_INVALID_COST'
  | 'WEIR_REQUEST_FUNCTION'
  | 'WEIR_TRUST_PROXY'
  | 'WEIR_FACE_FAILED'
  | 'WEIR_CLOSED'
  | 'WEIR_STORE_UNAVAILABLE'
  | 'WEIR_STORE_TIMEOUT'
  | 'WEIR_STORE_REPLY'
  | 'WEIR_STORE_VALUE'
  | 'WEIR_THROTTLED'

/** Every error that Weir throws or reports. `code` is stable; the message is for people and may change. */
export class WeirError extends Error {
  override readonly name: string = 'WeirError'
  readonly code: WeirErrorCode

  constructor(code: WeirErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Warns the process, and says where to read more. Codes of warnings are those of errors, and a few that are never thrown. */
export function warnProcess(code: WeirErrorCode | 'WEIR_LOCAL_ONLY' | 'WEIR_LISTENER', message: string): void {
  process.emitWarning(message, { type: 'WeirWarning', code, detail: `See docs/reference/errors.md#${code.toLowerCase()}` })
}

/** An option that can't be used: names the option, what was given and what is allowed. */
export function invalidOption(option: string, given: unknown, allowed: string): WeirError {
  return new WeirError('WEIR_INVALID_OPTION', `Option "${option}" is ${show(given)}; it must be ${allowed}.`)
}

export function closedError(): WeirError {
  return new WeirError('WEIR_CLOSED', 'The throttler is closed.')
}

/** A value as it appears in a message: short, on one line, without control characters. */
export function show(value: unknown): string {
  let text: string
  if (typeof value === 'string') text = JSON.stringify(value)
  else if (typeof value === 'function') text = `function ${value.name || '(anonymous)'}`
  else if (typeof value === 'object' && value !== null) {
    try {
      text = JSON.stringify(value) ?? String(value)
    } catch {
      text = Object.prototype.toString.call(value)
    }
  } else text = String(value)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out
  text = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ')
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}
