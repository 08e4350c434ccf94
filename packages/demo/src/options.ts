import { parseDuration, WeirError } from '@weir/core'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { UsageError } from './errors.ts'

const STORES = ['auto', 'redis', 'postgres', 'etcd', 'ipc'] as const
type StoreOption = (typeof STORES)[number]

/** The options of the command line. Times are milliseconds. */
export interface DemoOptions {
  /** Milliseconds for which requests are sent. Undefined sends all requests of a replay. */
  readonly duration: number | undefined
  readonly json: boolean
  readonly killRedis: boolean
  /** Whether to run twice: with background syncs, and with a store that decides each request. */
  readonly compare: boolean
  /** Units per client and interval. */
  readonly limit: number
  /** Length of an interval. In a replay, in the log's time. */
  readonly interval: number
  readonly spans: number
  readonly cooldown: number
  /** The store. `auto` uses REDIS_URL if it is set, otherwise a private redis-server if it is installed, otherwise the parent process. */
  readonly store: StoreOption
  /** The log to replay. Undefined for the simulated population. */
  readonly log: string | undefined
  readonly window: number
  readonly speed: number
}

/** Ends the program after `--help`. The message is the text to print. */
export class HelpAsked extends Error {
  override readonly name = 'HelpAsked'
}

const LIVE = { limit: 60, interval: 2_000, duration: 30_000 }
/** Enough requests in an interval to measure the cost of one, and few enough for a small machine. */
const COMPARE = { limit: 1_000, interval: 20_000, duration: 20_000 }
const REPLAY = { limit: 60, interval: 60_000 }
/** Milliseconds. In a shorter interval the order of arrivals would be chance, because requests take milliseconds. */
const SHORTEST_INTERVAL = 200

/**
 * Reads the arguments.
 *
 * @throws UsageError with one line for the user
 * @throws HelpAsked with the text of `--help`
 */
export function parseOptions(argv: readonly string[], env: NodeJS.ProcessEnv = process.env): DemoOptions {
  const command = definition()
  let help = ''
  command.exitOverride().configureOutput({ writeOut: (text) => (help += text), writeErr: () => {} })
  try {
    command.parse(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.helpDisplayed') throw new HelpAsked(help)
    throw new UsageError(error.message.replace(/^error: /, ''))
  }
  return checked(command.opts<RawOptions>(), env)
}

interface RawOptions {
  duration?: number
  json: boolean
  killRedis: boolean
  compare: boolean
  limit?: number
  interval?: number
  spans: number
  cooldown: number
  store: StoreOption
  log?: string
  window?: number
  speed?: number
}

function definition(): Command {
  return new Command('pnpm demo')
    .description(
      'One backend, and in front of it three gateways in separate processes, with Express, Fastify and Koa.\n' +
        'They share one limit per client and one for all clients. Most clients stay within their limits.\n' +
        'One client, mallory, sends five times its limit.',
    )
    .option('--duration <seconds>', 'how long requests are sent (default: 30, with --compare 20; a replay sends the whole log)', seconds)
    .option('--limit <n>', 'requests per client and interval (default: 60, with --compare 1000)', atLeastOne)
    .option('--interval <time>', 'length of the interval (default: 2s, with --compare 20s; with --log 1m, in the log’s time)', duration)
    .option('--spans <n>', 'parts of the interval. Counts are synced at the end of each part at the latest', wholeSpans, 6)
    .option('--cooldown <time>', 'how long a client that exceeds its limit stays blocked (0: until the interval ends)', duration, 0)
    .addOption(
      new Option('--store <kind>', 'auto: REDIS_URL if set, else a private redis-server if installed, else ipc (no server)')
        .choices(STORES)
        .default('auto'),
    )
    .option('--kill-redis', 'kill the private redis-server after a third of the time, restart it after two thirds', false)
    .option('--compare', 'run twice, the second time with a store that decides each request, and compare the cost', false)
    .option('--log <file>', 'replay an access log (Common or Combined Log Format, plain or .gz) and compare with an exact limiter')
    .option('--window <time>', 'replay the busiest stretch of this length (default: 1h)', duration)
    .option('--speed <factor>', 'replay this many times faster, intervals too (default: 60)', factor)
    .option('--json', 'print only a summary at the end, as JSON', false)
    .allowExcessArguments(false)
    .showSuggestionAfterError(false)
    .helpOption('--help', 'show this help')
    .addHelpText(
      'after',
      '\nREDIS_URL     a Redis to use instead of a private one\nREDIS_SERVER  the redis-server program to start (default: the one in PATH)\nPOSTGRES_URL  a PostgreSQL to use with --store postgres, instead of a private one\nETCD_URL      an etcd to use with --store etcd, instead of a private one\n\nIt ends by itself, also on Ctrl-C, and leaves no process behind.',
    )
}

function checked(raw: RawOptions, env: NodeJS.ProcessEnv): DemoOptions {
  const replay = raw.log !== undefined
  if (!replay && raw.window !== undefined) throw new UsageError('--window needs --log')
  if (!replay && raw.speed !== undefined) throw new UsageError('--speed needs --log')
  if (replay && raw.killRedis)
    throw new UsageError('--kill-redis cannot be combined with --log, because the exact limiter of --log has no outages')
  if (replay && raw.cooldown > 0)
    throw new UsageError('--cooldown cannot be combined with --log, because the exact limiter of --log has no cooldown')
  if (raw.compare && replay) throw new UsageError('--compare cannot be combined with --log')
  if (raw.compare && raw.killRedis) throw new UsageError('--compare cannot be combined with --kill-redis')
  const other = raw.store !== 'auto' && raw.store !== 'redis'
  if (raw.compare && other)
    throw new UsageError(`--compare counts the commands of a Redis server, so it cannot be combined with --store ${raw.store}`)
  if (raw.killRedis && other) throw new UsageError(`--kill-redis cannot be combined with --store ${raw.store}`)
  if (raw.killRedis && env['REDIS_URL']) throw new UsageError('--kill-redis kills only a private redis-server. Unset REDIS_URL')
  const speed = raw.speed ?? 60
  const usual = replay ? { ...REPLAY, duration: undefined } : raw.compare ? COMPARE : LIVE
  const interval = raw.interval ?? usual.interval
  const real = replay ? interval / speed : interval
  if (real < SHORTEST_INTERVAL) {
    throw new UsageError(
      `an interval would last ${Number(real.toFixed(3))} ms, but must last at least ${SHORTEST_INTERVAL} ms${replay ? ' (lower --speed or raise --interval)' : ''}`,
    )
  }
  if (real / raw.spans < 5) throw new UsageError(`--spans ${raw.spans} is too many: a span would be shorter than 5 ms`)
  const window = raw.window ?? 3_600_000
  if (window <= 0) throw new UsageError('--window must be longer than 0')
  return {
    ...raw,
    store: raw.compare ? 'redis' : raw.store,
    duration: raw.duration ?? usual.duration,
    limit: raw.limit ?? usual.limit,
    interval,
    log: raw.log,
    window,
    speed,
  }
}

function number(text: string): number {
  return text.trim() === '' ? Number.NaN : Number(text)
}

function seconds(text: string): number {
  const value = number(text)
  if (!(value >= 1 && value <= 86_400)) throw new InvalidArgumentError('It must be a number of seconds from 1 to 86400.')
  return value * 1000
}

function atLeastOne(text: string): number {
  const value = number(text)
  if (!(Number.isSafeInteger(value) && value >= 1)) throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return value
}

function wholeSpans(text: string): number {
  const value = number(text)
  if (!(Number.isSafeInteger(value) && value >= 2 && value <= 1000))
    throw new InvalidArgumentError('It must be a whole number from 2 to 1000.')
  return value
}

function factor(text: string): number {
  const value = number(text)
  if (!(value > 0 && value <= 3600)) throw new InvalidArgumentError('It must be a number above 0, at most 3600.')
  return value
}

function duration(text: string): number {
  if (text.trim() === '0') return 0
  try {
    return parseDuration(text, 'time', 0)
  } catch (error) {
    if (error instanceof WeirError) throw new InvalidArgumentError('It must be a time with its unit, such as "500ms", "10s", "1m" or "1h".')
    throw error
  }
}
