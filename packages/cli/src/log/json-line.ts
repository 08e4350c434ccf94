import { hasAddress } from './client.ts'
import { type LogRecord, type RequestLine, requestLine } from './record.ts'
import { timeOf } from './time.ts'

/** Field names of servers and loggers (nginx, Caddy, Traefik, Envoy, pino-http, GoAccess, AWS, GCP). The first one present counts. */
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
/** Fields that may contain host names. The other fields are also used for names of programs, so they must contain an address. */
const HOSTS: ReadonlySet<string> = new Set(['remote_addr', 'clienthost', 'remote_host'])
const METHOD = ['method', 'request_method', 'requestmethod', 'http_method', 'httpmethod']
const TARGET = ['uri', 'request_uri', 'url', 'requesturi', 'requesturl', 'requestpath', 'path', 'target', 'resourcepath']
/** Fields in which log collectors (Docker, Kubernetes, journald, Filebeat, GCP) put the original line. */
const LINE = ['log', 'message', 'line', 'textpayload', 'msg']
const STATUS = ['status', 'status_code', 'statuscode', 'response_code', 'downstreamstatus']
/** Objects that may contain the status. */
const ANSWERS = ['res', 'response', 'http', 'httprequest']
/** Durations of requests. Names of nginx mean seconds, and names with `ms` milliseconds. The unit of `duration` depends on its size. */
const SECONDS = ['request_time', 'response_time_s', 'elapsed_s']
const MILLISECONDS = ['responsetime', 'duration_ms', 'response_time_ms', 'latency_ms', 'elapsed_ms', 'elapsedms', 'durationms']
/** Objects that may contain the fields instead. */
const INNER = ['request', 'req', 'http', 'httprequest']

type Fields = Readonly<Record<string, unknown>>

/**
 * Reads a line with a JSON object. An unknown client is `''`, and an unknown time is NaN.
 *
 * @param named the field that the client is read from instead of the usual fields
 * @param inner reads a line within a field
 * @returns undefined if the line is no request
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
  /** Whether the record has a method and a target, not only a time and an address. */
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
    // The variable `$request` of nginx is the whole request line.
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
    // Envoy logs milliseconds.
    if ('downstream_remote_address' in this.#fields) return number
    // Traefik logs nanoseconds. The bound for Caddy below doesn't fit, because a redirection by Traefik itself takes less than 0.1 ms.
    if (number !== undefined && 'clienthost' in this.#fields) return number / 1e6
    // Caddy logs seconds, and no request takes a day (1e5 s). A larger number is in nanoseconds.
    if (number !== undefined) return number < 1e5 ? number * 1000 : number / 1e6
    return typeof duration === 'string' ? spanOf(duration) : undefined
  }

  get status(): string | undefined {
    const inner = ANSWERS.map((name) => this.#fields[name]).filter(isObject)
    const found = [this.#fields, ...inner.map(lowered)].map((fields) => text(first(fields, STATUS))).find((one) => one !== undefined)
    return found !== undefined && /^\d{3}$/.test(found) ? found : undefined
  }

  field(name: string): string | undefined {
    for (const fields of [this.#request, this.#fields]) {
      const headers = isObject(fields['headers']) ? lowered(fields['headers']) : {}
      // Headers may be given by nginx's names too.
      const header = headers[name] ?? headers[name.replace(/^http_/, '').replaceAll('_', '-')]
      // The user agent is `http_user_agent` in nginx, and `user_agent` in other programs.
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

/** A number that is not negative, or undefined. */
function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'number' ? value : typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : undefined
  return number !== undefined && number >= 0 ? number : undefined
}

const SPANS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** Reads a duration in the format of Go: `12.5ms`, `1m2.5s`. */
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

/** Headers in Caddy's logs are lists. */
function text(value: unknown): string | undefined {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return text(value.join(', '))
  if (typeof value === 'string') return value === '' || value === '-' ? undefined : value
  return typeof value === 'number' ? String(value) : undefined
}
