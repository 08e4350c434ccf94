import { invalidOption } from './errors.ts'
import type { Emitter } from './events.ts'
import { printable, reasonOf, stackOf } from './show.ts'

/**
 * Accepts a logger: pino's, Fastify's or NestJS's, `console`, or any object with `error` and `warn`. Weir doesn't wait for its functions,
 * and an error that one throws affects no request. Messages and logged errors are one line and safe to print, while the `cause` of an event
 * contains the original error.
 */
export type Logger = FieldLogger | MessageLogger

/** The part of pino's interface that Weir uses. */
export interface FieldLogger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/**
 * A logger that takes the message first and has no `info`, such as NestJS's. Lines of level info go to `log`. Lines for a missing function
 * are not written. The last argument is the context, `'Weir'`.
 */
export interface MessageLogger {
  error(message: string, ...more: string[]): void
  warn(message: string, ...more: string[]): void
  log?(message: string, ...more: string[]): void
  debug?(message: string, ...more: string[]): void
  readonly info?: never
}

/** Makes a logger of either kind accept fields and a message. */
function fieldLogger(logger: Logger): FieldLogger {
  if (takesFields(logger)) return logger
  const write = (level: 'debug' | 'log' | 'warn') => (fields: object, message: string) => {
    const details = Object.entries(fields).flatMap(([name, value]) => {
      const text = value instanceof Error ? value.message : String(value)
      return message.includes(text) ? [] : [`${name}: ${text}`]
    })
    logger[level]?.(printable(`${message} (${details.join(', ')})`, LONGEST), 'Weir')
  }
  return { debug: write('debug'), info: write('log'), warn: write('warn') }
}

function takesFields(logger: Logger): logger is FieldLogger {
  return typeof logger.info === 'function'
}

/** Longest line of a logger without fields, in characters. */
const LONGEST = 2_000

/** Writes state changes to a logger, and nothing else, so the log does not grow with the traffic. */
export function logEvents(given: Logger, emitter: Emitter): void {
  const logger = fieldLogger(given)
  const node = () => emitter.node
  emitter.on('storeDown', ({ cause }) =>
    logger.warn({ node: node(), err: logged(cause) }, 'weir: the store is down, so policies use their failMode'),
  )
  emitter.on('storeUp', ({ durationMs }) => logger.info({ node: node(), durationMs }, 'weir: the store answers again'))
  emitter.on('overflow', ({ policy, maxKeys }) => logger.warn({ node: node(), policy, maxKeys }, 'weir: the table of keys is full'))
  emitter.on('nodes', ({ nodes, before }) => logger.debug({ node: node(), nodes, before }, 'weir: the number of processes changed'))
  emitter.on('peerRuleDiffers', ({ policy, node: other, changes }) =>
    logger.info({ node: node(), policy, other, changes }, 'weir: another process has this rule with other options'),
  )
  emitter.on('rulesApplied', ({ version, before, by, why }) =>
    logger.info({ node: node(), version, before, by, why }, 'weir: new rules applied'),
  )
  emitter.on('warning', ({ error }) => logger.warn({ node: node(), err: logged(error), code: error.code }, `weir: ${error.message}`))
}

/**
 * A copy of an error that is safe to log. `console` and other loggers print messages, stacks and causes raw. Text from users or a server
 * could start a new log line, or change a terminal's colours.
 */
function logged(error: unknown): Error {
  const safe = new Error(reasonOf(error))
  safe.stack = stackOf(error)
  try {
    const { name, code } = (error instanceof Error ? error : {}) as { name?: unknown; code?: unknown }
    if (typeof name === 'string') safe.name = printable(name, 50)
    if (typeof code === 'string') Object.assign(safe, { code: printable(code, 50) })
  } catch {
    // Fields that can't be read are left out.
  }
  return safe
}

/** @throws WeirError `WEIR_INVALID_OPTION` */
export function checkLogger(logger: Logger | undefined): void {
  if (logger === undefined) return
  const has = (name: string) => typeof (logger as unknown as Record<string, unknown> | null)?.[name] === 'function'
  const methods = has('info') ? ['debug', 'warn'] : ['error', 'warn']
  if (!methods.every(has)) {
    throw invalidOption(
      'logger',
      logger,
      'an object with the functions debug, info and warn, as that of pino, or error and warn, as that of NestJS',
    )
  }
}
