import { invalidOption } from './errors.ts'
import type { EventName, Listener } from './events.ts'
import { printable, reasonOf, stackOf } from './show.ts'

/**
 * The part of pino's interface that is used; a logger of pino, of Fastify, or `console` will do. Nothing waits for its
 * functions, and what one throws disturbs nobody. Messages are one line, safe to print, and so is what errors say; `cause` of events holds them as they were.
 */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** Writes changes of state to a logger, and nothing else: what a log holds does not grow with the traffic. */
export function logEvents(logger: Logger, node: () => string, on: <E extends EventName>(name: E, listener: Listener<E>) => void): void {
  on('degraded', ({ cause }) =>
    logger.warn({ node: node(), err: logged(cause) }, 'weir: the store is away; limits are kept by what is known'),
  )
  on('recovered', ({ after }) => logger.info({ node: node(), after }, 'weir: the store answers again'))
  on('overflow', ({ policy, maxKeys }) => logger.warn({ node: node(), policy, maxKeys }, 'weir: the table of keys is full'))
  on('nodes', ({ nodes, before }) => logger.debug({ node: node(), nodes, before }, 'weir: the number of nodes changed'))
  on('rule-changed', ({ policy, node: other, changes }) =>
    logger.info({ node: node(), policy, other, changes }, 'weir: another node has this rule with other numbers'),
  )
  on('warning', ({ error }) => logger.warn({ node: node(), err: logged(error), code: error.code }, `weir: ${error.message}`))
}

/**
 * An error as a log may hold it. `console` and other loggers print messages, stacks and causes raw: what users or a server put into
 * them could begin a line of its own, or turn a terminal's colours.
 */
function logged(error: unknown): Error {
  const safe = new Error(reasonOf(error))
  safe.stack = stackOf(error)
  try {
    const { name, code } = (error instanceof Error ? error : {}) as { name?: unknown; code?: unknown }
    if (typeof name === 'string') safe.name = printable(name, 50)
    if (typeof code === 'string') Object.assign(safe, { code: printable(code, 50) })
  } catch {
    // What can't be read is left out.
  }
  return safe
}

/** @throws WeirError `WEIR_INVALID_OPTION` */
export function checkLogger(logger: Logger | undefined): void {
  if (logger === undefined) return
  const methods = ['debug', 'info', 'warn'] as const
  if (methods.some((method) => typeof logger?.[method] !== 'function')) {
    throw invalidOption('logger', logger, `an object with the functions ${methods.join(', ')}, such as a logger of pino`)
  }
}
