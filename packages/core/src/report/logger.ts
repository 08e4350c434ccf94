import { invalidOption } from './errors.ts'
import type { EventName, Listener } from './events.ts'

/**
 * The part of pino's interface that is used; a logger of pino, of Fastify, or `console` will do. Nothing waits for its
 * functions, and what one throws disturbs nobody. Messages are one line, safe to print; errors are handed over as they are.
 */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/** Writes changes of state to a logger, and nothing else: what a log holds does not grow with the traffic. */
export function logEvents(logger: Logger, node: () => string, on: <E extends EventName>(name: E, listener: Listener<E>) => void): void {
  on('degraded', ({ cause }) => logger.warn({ node: node(), err: cause }, 'weir: the store is away; limits are kept by what is known'))
  on('recovered', ({ after }) => logger.info({ node: node(), after }, 'weir: the store answers again'))
  on('overflow', ({ policy, maxKeys }) => logger.warn({ node: node(), policy, maxKeys }, 'weir: the table of keys is full'))
  on('nodes', ({ nodes, before }) => logger.debug({ node: node(), nodes, before }, 'weir: the number of nodes changed'))
  on('warning', ({ error }) => logger.warn({ node: node(), err: error, code: error.code }, `weir: ${error.message}`))
}

/** @throws WeirError `WEIR_INVALID_OPTION` */
export function checkLogger(logger: Logger | undefined): void {
  if (logger === undefined) return
  const methods = ['debug', 'info', 'warn'] as const
  if (methods.some((method) => typeof logger?.[method] !== 'function')) {
    throw invalidOption('logger', logger, `an object with the functions ${methods.join(', ')}, such as a logger of pino`)
  }
}
