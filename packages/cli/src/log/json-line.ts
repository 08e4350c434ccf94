import { hasAddress } from './client.ts'
import { type LogRecord, type RequestLine, requestLine } from './record.ts'
import { timeOf } from './time.ts'

/** Where servers and loggers (nginx, Caddy, Traefik, Envoy, pino-http, GoAccess, AWS, GCP) put what a replay needs; the first one present counts. */
const TIME = [
  'time',
  'ts',
  'timestamp',
  '@timestamp',
  'time_iso8601',
  'msec',
  'time_local',
  'start_time',
  'starttime',
  'requesttime',
  'date',
]
const CLIENT = [
  'remote_addr',
  'client_ip',
  'remote_ip',
  'remoteaddress',
  'clientip',
  'remoteip',
  'ip',
  'clienthost',
  'downstream_remote_address',
  'client',
  'source',
  'remote_host',
]
/** These may be names of hosts too; the others also name programs and the like. */
const HOSTS: ReadonlySet<string> = new Set(['remote_addr', 'clienthost', 'remote_host'])
const METHOD = ['method', 'request_method', 'requestmethod', 'http_method', 'httpmethod']
const TARGET = ['uri', 'request_uri', 'url', 'requesturi', 'requesturl', 'requestpath', 'path', 'target', 'resourcepath']
/** Where programs that collect logs (Docker, Kubernetes, journald, Filebeat, GCP) put the line as it was. */
const LINE = ['log', 'message', 'line', 'textpayload', 'msg']
/** How long requests took: in seconds by the names of nginx, in milliseconds by those that say so; `duration` is told apart by its size. */
const SECONDS = ['request_time', 'response_time_s', 'elapsed_s']
const MILLISECONDS = ['responsetime', 'duration_ms', 'response_time_ms', 'latency_ms', 'elapsed_ms', 'elapsedms', 'durationms']
/** Objects in which these may stand instead. */
const INNER = ['request', 'req', 'http', 'httprequest']

type Fields = Readonly<Record<string, unknown>>

/**
 * Reads a line that holds a JSON object. A request whose client or time is not known has the client `''`, or the time NaN.
 *
 * @param named the field that the client is read from, if not from the usual ones
 * @param inner reads a line within a field
 * @returns undefined when it is no request
 */
export function parseJsonLine(
  line: string,
  named?: string,
  inner: (line: string) => LogRecord | undefined = () => undefined,
): LogRecord | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  const record = isObject(value) ? new JsonRecord(value) : undefined
  if (record === undefined) return undefined
  const known = !Number.isNaN(record.time) && (record.client !== '' || (named !== undefined && record.field(named) !== undefined))
  if (known && record.isRequest) return record
  for (const name of LINE) {
    const text = record.own(name)
    const found = text === undefined ? undefined : inner(text.trim())
    if (found !== undefined) return found
  }
  return known || record.isRequest ? record : undefined
}

class JsonRecord implements LogRecord {
  time: number
  readonly coarse: boolean
  client: string
  readonly clientField: string
  readonly method: string
  readonly target: string
  readonly valid: boolean
  /** It has the method and the target of a request, not only a time and an address. */
  readonly isRequest: boolean
  readonly #fields: Fields
  readonly #request: Fields

  constructor(value: Fields) {
    const fields = lowered(value)
    const inner = INNER.map((name) => fields[name]).find(isObject)
    const request = inner === undefined ? fields : lowered(inner)
    const time = TIME.map((name) => timeOf(fields[name])).find((one) => one !== undefined)
    const method = text(first(request, METHOD)) ?? text(first(fields, METHOD))
    const target = text(first(request, TARGET)) ?? text(first(fields, TARGET))
    // nginx's `$request` is the whole line.
    const line: RequestLine = requestLine(text(fields['request']) ?? `${method ?? ''} ${target ?? ''}`)
    this.time = time?.milliseconds ?? Number.NaN
    this.coarse = time?.coarse === true
    const [field = '', client = ''] = clientOf(request) ?? clientOf(fields) ?? []
    this.client = client
    this.clientField = field
    this.method = method?.toUpperCase() ?? line.method
    this.target = target ?? line.target
    this.valid = line.valid || (method === undefined && target !== undefined)
    this.isRequest = line.valid
    this.#fields = fields
    this.#request = request
  }

  /** A text of the outermost object. */
  own(name: string): string | undefined {
    return text(this.#fields[name])
  }

  get duration(): number | undefined {
    const [seconds, milliseconds] = [SECONDS, MILLISECONDS].map((names) => numberOf(first(this.#fields, names)))
    if (seconds !== undefined) return seconds * 1000
    if (milliseconds !== undefined) return milliseconds
    const { duration } = this.#fields
    const number = numberOf(duration)
    // Envoy's is in milliseconds.
    if ('downstream_remote_address' in this.#fields) return number
    // Traefik's is in nanoseconds: what it answers by itself, such as a redirection, takes less than a tenth of a millisecond.
    if (number !== undefined && 'clienthost' in this.#fields) return number / 1e6
    // Caddy's is in seconds, and nothing takes a day.
    if (number !== undefined) return number < 1e5 ? number * 1000 : number / 1e6
    return typeof duration === 'string' ? spanOf(duration) : undefined
  }

  field(name: string): string | undefined {
    for (const fields of [this.#request, this.#fields]) {
      const headers = isObject(fields['headers']) ? lowered(fields['headers']) : {}
      // Headers may be asked for as nginx names them too.
      const header = headers[name] ?? headers[name.replace(/^http_/, '').replaceAll('_', '-')]
      // nginx has `http_user_agent`, and other programs `user_agent`.
      const names = [name, `http_${name.replaceAll('-', '_')}`, name.replaceAll('-', '_')]
      const found = text(header) ?? names.map((one) => text(fields[one])).find((one) => one !== undefined)
      if (found !== undefined) return found
    }
    return name.includes('.') ? text(name.split('.').reduce<unknown>(within, this.#fields)) : undefined
  }
}

function within(value: unknown, name: string): unknown {
  return isObject(value) ? lowered(value)[name] : undefined
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null
}

/** The client that an object names: an address, a list of addresses, or an object with one. */
function clientOf(fields: Fields): readonly [field: string, client: string] | undefined {
  for (const name of CLIENT) {
    const value = fields[name]
    const found = isObject(value) && !Array.isArray(value) ? (text(within(value, 'ip')) ?? text(within(value, 'address'))) : text(value)
    if (found !== undefined && (HOSTS.has(name) || hasAddress(found))) return [name, found]
  }
  return undefined
}

/** Not negative. */
function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'number' ? value : typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : undefined
  return number !== undefined && number >= 0 ? number : undefined
}

const SPANS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** As programs in Go write it: `12.5ms`, `1m2.5s`. */
function spanOf(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/.test(text) || text.length > 64) return undefined
  let sum = 0
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g))
    sum += Number(number) * (SPANS[unit as string] as number)
  return sum
}

function lowered(fields: Fields): Fields {
  const copy: Record<string, unknown> = Object.create(null)
  for (const [name, value] of Object.entries(fields)) copy[name.toLowerCase()] ??= value
  return copy
}

function first(fields: Fields, names: readonly string[]): unknown {
  for (const name of names) {
    const value = fields[name]
    if (value !== undefined && value !== null && value !== '') return value
  }
  return undefined
}

/** Caddy has lists. */
function text(value: unknown): string | undefined {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return text(value.join(', '))
  if (typeof value === 'string') return value === '' || value === '-' ? undefined : value
  return typeof value === 'number' ? String(value) : undefined
}
