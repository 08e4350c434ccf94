import { type LogRecord, requestLine } from './record.ts'

/** Where servers and loggers (nginx, Caddy, Traefik, pino-http, GoAccess, AWS) put what a replay needs; the first that is there counts. */
const TIME = ['time', 'ts', 'timestamp', '@timestamp', 'time_iso8601', 'msec', 'time_local', 'starttime', 'date']
const CLIENT = [
  'remote_addr',
  'client_ip',
  'remote_ip',
  'remoteaddress',
  'clientip',
  'ip',
  'clienthost',
  'host_ip',
  'client',
  'remote_host',
]
const METHOD = ['method', 'request_method', 'requestmethod', 'http_method']
const TARGET = ['uri', 'request_uri', 'url', 'requesturi', 'requestpath', 'path', 'target']
/** How long requests took: in seconds by the names of nginx, in milliseconds by those that say so; `duration` is told apart by its size. */
const SECONDS = ['request_time', 'response_time_s', 'elapsed_s']
const MILLISECONDS = ['responsetime', 'duration_ms', 'response_time_ms', 'latency_ms', 'elapsed_ms', 'elapsedms', 'durationms']
/** Objects in which these may stand instead. */
const INNER = ['request', 'req', 'http', 'httprequest']

type Fields = Readonly<Record<string, unknown>>

/** Seconds, milliseconds, microseconds and nanoseconds of this century are told apart by their size. */
const UNITS = [
  [1e11, 1000],
  [1e14, 1],
  [1e17, 1e-3],
  [1e20, 1e-6],
] as const

/**
 * Reads a line that holds a JSON object.
 *
 * @returns undefined when it is none, or lacks a time or a client
 */
export function parseJsonLine(line: string): LogRecord | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const fields = lowered(value as Fields)
  const time = timeOf(first(fields, TIME))
  const inner = INNER.map((name) => fields[name]).find((one) => typeof one === 'object' && one !== null)
  const request = inner === undefined ? fields : lowered(inner as Fields)
  const client = text(first(request, CLIENT)) ?? text(first(fields, CLIENT))
  if (time === undefined || client === undefined) return undefined
  return new JsonRecord(time, client, fields, request)
}

class JsonRecord implements LogRecord {
  time: number
  readonly coarse: boolean
  readonly client: string
  readonly method: string
  readonly target: string
  readonly valid: boolean
  readonly #fields: Fields
  readonly #request: Fields

  constructor({ milliseconds, coarse }: Time, client: string, fields: Fields, request: Fields) {
    const method = text(first(request, METHOD)) ?? text(first(fields, METHOD))
    const target = text(first(request, TARGET)) ?? text(first(fields, TARGET))
    // nginx's `$request` is the whole line.
    const line = requestLine(text(fields['request']) ?? `${method ?? ''} ${target ?? ''}`)
    this.time = milliseconds
    this.coarse = coarse
    this.client = client
    this.method = method?.toUpperCase() ?? line.method
    this.target = target ?? line.target
    this.valid = line.valid || (method === undefined && target !== undefined)
    this.#fields = fields
    this.#request = request
  }

  get duration(): number | undefined {
    const [seconds, milliseconds] = [SECONDS, MILLISECONDS].map((names) => numberOf(first(this.#fields, names)))
    if (seconds !== undefined) return seconds * 1000
    if (milliseconds !== undefined) return milliseconds
    const { duration } = this.#fields
    const number = numberOf(duration)
    // Caddy tells seconds, Traefik nanoseconds: nothing takes a day, and nothing a tenth of a millisecond.
    if (number !== undefined) return number < 1e5 ? number * 1000 : number / 1e6
    return typeof duration === 'string' ? spanOf(duration) : undefined
  }

  field(name: string): string | undefined {
    for (const fields of [this.#request, this.#fields]) {
      const { headers } = fields
      const header = typeof headers === 'object' && headers !== null ? lowered(headers as Fields)[name] : undefined
      // Caddy has lists; nginx has `http_user_agent`, and other programs `user_agent`.
      const found = text(Array.isArray(header) ? header.join(', ') : (header ?? fields[name]))
      const flat = found ?? text(fields[`http_${name.replaceAll('-', '_')}`]) ?? text(fields[name.replaceAll('-', '_')])
      if (flat !== undefined) return flat
    }
    return undefined
  }
}

interface Time {
  readonly milliseconds: number
  readonly coarse: boolean
}

function timeOf(value: unknown): Time | undefined {
  const number = typeof value === 'number' ? value : typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : undefined
  if (number === undefined) return typeof value === 'string' ? dateOf(value) : undefined
  const unit = UNITS.find(([most]) => number < most)
  if (unit === undefined || !(number > 0)) return undefined
  return { milliseconds: number * unit[1], coarse: unit[1] === 1000 && Number.isInteger(number) }
}

/** No log is of a later one, and ever later ones no date can be. */
const YEAR_10000 = 253_402_300_800_000

/** ISO 8601, or nginx's `$time_local`. */
function dateOf(value: string): Time | undefined {
  if (value.length > 64) return undefined
  const local = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})$/.exec(value)
  const milliseconds = Date.parse(local === null ? value : `${local[1]} ${local[2]} ${local[3]} ${local[4]} ${local[5]}`)
  return milliseconds > 0 && milliseconds < YEAR_10000 ? { milliseconds, coarse: !/:\d\d[.,]\d/.test(value) } : undefined
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

function text(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' || value === '-' ? undefined : value
  return typeof value === 'number' ? String(value) : undefined
}
