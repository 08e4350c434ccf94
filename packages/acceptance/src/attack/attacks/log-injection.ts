import { attack } from '../harness/attack.ts'
import { serve } from '../harness/serve.ts'
import { Wire } from '../harness/wire.ts'

type Kind = 'none' | 'lines' | 'console'
const TEXT = 'x\nINJECTED\r\nINJECTED \u001b[31m\u009b31m\u2028INJECTED\u0007'
/** Output that starts a new line or controls a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const RAW = /^INJECTED|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/m

/** Puts control characters into errors of user functions and into keys. They must neither start a line in a log nor control a terminal. */
export const logInjection = attack<{ readonly logger: Kind }>({
  name: 'log-injection',
  targets: ['express5', 'fastify5', 'koa3', 'node'],

  async victim({ target, args: { logger } }) {
    const boom = (): never => {
      throw Object.assign(new Error(TEXT), { name: TEXT, code: TEXT })
    }
    // Joins the strings of a message, as a logger of plain lines does. It escapes fields of objects itself.
    const write = (...said: unknown[]): void => console.log(said.filter((part) => typeof part === 'string').join(' '))
    const loggers = { none: undefined, lines: { debug: write, info: write, warn: write }, console }
    const ways = [{ key: boom }, { skip: boom }, { cost: boom }, { match: boom }, { key: () => TEXT }, { handler: boom }, { message: boom }]
    const { backgroundStore } = await import('@weir/core/sync')
    const store = backgroundStore({
      kind: 'broken',
      open: () => ({ sync: () => Promise.reject(new Error(TEXT)), close: () => Promise.resolve() }),
    })
    const ports: number[] = []
    for (const way of [...ways, { store }]) {
      const options = {
        key: 'route',
        limit: 1,
        interval: '1h',
        cooldown: '1h',
        ...way,
        ...(logger !== 'none' && { logger: loggers[logger] }),
      }
      const { port, throttler } = await serve(target as never, { options })
      throttler.block(TEXT, '1h')
      ports.push(port)
    }
    return { answer: () => ports }
  },

  async run({ start, result }) {
    for (const logger of ['none', 'lines', 'console'] as const) {
      const victim = await start({ logger })
      for (const port of await victim.ask<number[]>('ports')) {
        const wire = new Wire(port)
        for (let i = 0; i < 3; i++) await wire.request('GET', '/')
        wire.close()
      }
      await new Promise((resolve) => setTimeout(resolve, 300))
      // Some consoles end a line with a carriage return and a newline.
      const raw = victim.output.replaceAll('\r\n', '\n').match(RAW)
      const said = victim.output.includes('INJECTED')
      result(
        `newlines and escapes in ${logger === 'none' ? 'standard error' : `a logger that is ${logger}`}`,
        victim.up && raw === null,
        raw === null ? (said ? 'escaped' : 'not said') : 'raw',
      )
      await victim.kill()
    }
  },
})
