/** One request of an access log. Texts are as they were logged: whoever sent the request chose them. */
export interface LogRecord {
  /** Milliseconds since the Unix epoch; NaN if it is not known. */
  time: number
  /** The time is a whole second because the log tells no more. */
  readonly coarse: boolean
  /** An address, or a host name; as it was logged until `Clients` has found it, and `''` if it is not known. */
  client: string
  /** Where the client stood. */
  readonly clientField: string
  /** In capitals; `GET` where the log has no HTTP request (TLS bytes, probes, nothing). */
  readonly method: string
  /** As the client sent it, with its query; `/` where the log has no HTTP request. */
  readonly target: string
  /** False where the line holds no HTTP request: it came all the same, and servers answer it. */
  readonly valid: boolean
  /** Milliseconds until it was answered; undefined where the log does not tell. */
  readonly duration: number | undefined
  /** A header of the request, or another field of the log, by its name in lower case; of text the word of a number too. */
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

/** Reads e.g. `GET /path HTTP/1.1`. */
export function requestLine(text: string): RequestLine {
  // The form of nearly all, without a search for the end.
  const first = text.indexOf(' ')
  const last = text.lastIndexOf(' ')
  if (first > 0 && last > first + 1 && text.startsWith('HTTP/', last + 1) && isWord(text, first)) {
    return { method: text.slice(0, first), target: text.slice(first + 1, last), valid: true }
  }
  const found = REQUEST.exec(text)
  return found === null ? NONE : { method: (found[1] as string).toUpperCase(), target: found[2] as string, valid: true }
}

/** Whether the text begins with so many capitals. */
function isWord(text: string, length: number): boolean {
  if (length > 24) return false
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x41 || code > 0x5a) return false
  }
  return true
}
