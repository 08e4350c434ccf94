/** One request of an access log. Its texts are untrusted, because the client chose them. */
export interface LogRecord {
  /** Milliseconds since the Unix epoch. NaN if it is unknown. */
  time: number
  /** Whether the time is a whole second, because the log has no fractions. */
  readonly coarse: boolean
  /** An address or a host name, or `''` if it is unknown. It is the logged text until `Clients` has found the client in it. */
  client: string
  /** The field that the client was read from. */
  readonly clientField: string
  /** In capitals. `GET` if the log has no HTTP request (TLS bytes, probes, nothing). */
  readonly method: string
  /** The target with its query, as the client sent it. `/` if the log has no HTTP request. */
  readonly target: string
  /** False if the line has no HTTP request. It still counts, because servers answer such connections. */
  readonly valid: boolean
  /** Milliseconds until the answer. Undefined if the log does not contain it. */
  readonly duration: number | undefined
  /** The status of the answer, such as `404`. Undefined if the log does not contain it. */
  readonly status: string | undefined
  /** A header of the request, or another field of the log, by its name in lower case. In text logs also a word by its number. */
  field(name: string): string | undefined
}

const REQUEST = /^([A-Za-z][A-Za-z_-]{0,23}) +(\S.*?)(?: +HTTP\/\d(?:\.\d)?)?$/s

/** The parts of a logged request line. */
export interface RequestLine {
  readonly method: string
  readonly target: string
  readonly valid: boolean
}

const NONE: RequestLine = { method: 'GET', target: '/', valid: false }

/** Reads a request line such as `GET /path HTTP/1.1`. */
export function requestLine(text: string): RequestLine {
  // Nearly all request lines have this form, which needs no regular expression.
  const first = text.indexOf(' ')
  const last = text.lastIndexOf(' ')
  if (first > 0 && last > first + 1 && text.startsWith('HTTP/', last + 1) && isWord(text, first)) {
    return { method: text.slice(0, first), target: text.slice(first + 1, last), valid: true }
  }
  const found = REQUEST.exec(text)
  return found === null ? NONE : { method: (found[1] as string).toUpperCase(), target: found[2] as string, valid: true }
}

/** Whether the first `length` characters are capital letters, at most 24. */
function isWord(text: string, length: number): boolean {
  if (length > 24) return false
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x41 || code > 0x5a) return false
  }
  return true
}
