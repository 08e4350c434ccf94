import { attack } from '../harness/attack.ts'
import { ADAPTERS, type Target } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import type { Victim } from '../harness/victim.ts'
import { type Reply, Wire } from '../harness/wire.ts'

const FUNCTIONS = [
  ...['skip', 'enabled', 'allow', 'deny', 'match', 'key', 'cost', 'plan', 'message', 'handler', 'onRejected'],
  ...['requestWasSuccessful', 'listener', 'logger'],
] as const
/** `late`: a valid value after a while. `tempting`: a promise of the value that allows most. `gone`: rejects after the client has left. */
const WAYS = ['throws', 'rejects', 'rejects late', 'never', 'nonsense', 'late', 'tempting', 'gone'] as const
type Function = (typeof FUNCTIONS)[number]
type Way = (typeof WAYS)[number]
type Asked = { readonly what: Function; readonly way: Way }

const GOOD: Record<Function, unknown> = {
  ...{
    skip: false,
    enabled: true,
    allow: false,
    deny: false,
    match: true,
    key: 'k',
    cost: 1,
    plan: 'free',
    message: 'no',
    handler: undefined,
  },
  ...{ onRejected: undefined, requestWasSuccessful: true, listener: undefined, logger: undefined },
}
const TEMPTING: Partial<Record<Function, unknown>> = {
  ...{ skip: true, enabled: false, allow: true, deny: true, match: false, cost: 0.001, plan: 'pro', requestWasSuccessful: false },
}

/**
 * Makes a user's function fail. The process must stay up, answer every request, and apply the option's fallback. The value of a promise
 * may be used or ignored, but not the promise itself.
 */
export const callbacks = attack<null>({
  name: 'callbacks',
  targets: ADAPTERS,
  short: { targets: ['express5', 'fastify5', 'koa3', 'node'] },

  async victim({ target }) {
    const answer = async ({ what, way }: Asked): Promise<number> => {
      const { throttler, port } = await serve(target as never, { options: optionsOf(target, what, way) })
      if (what === 'listener') {
        for (const event of ['warning', 'rejections', 'blocked', 'nodes', 'overflow'] as const)
          throttler.on(event, failing(way, what, target) as never)
        throttler.block('other', '1h')
      }
      return port
    }
    return { answer }
  },

  async run({ start, result, short }) {
    let together = await start(null)
    for (const way of WAYS) {
      // Tries all functions in one process. If it ends, the long form tries each in its own process to find the cause.
      const judged = await Promise.all(FUNCTIONS.map((what) => judge(together, { what, way }).catch((error) => String(error))))
      await settled()
      if (together.up) {
        for (const [i, why] of judged.entries()) result(`${FUNCTIONS[i]} ${way}`, why === undefined, why)
        continue
      }
      if (short) result(`${FUNCTIONS.length} functions, ${way}`, false, together.ended)
      else {
        for (const what of FUNCTIONS) {
          const alone = await start(null)
          const why = await judge(alone, { what, way }).catch((error) => String(error))
          await settled()
          result(`${what} ${way}`, alone.up && why === undefined, alone.up ? why : alone.ended)
          await alone.kill()
        }
      }
      together = await start(null)
    }
  },
})

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60))

/** Returns the fault that was found, or nothing. */
async function judge(victim: Victim, { what, way }: Asked): Promise<string | undefined> {
  const port = await victim.ask<number>({ what, way })
  const wire = new Wire(port)
  if (way === 'gone') {
    for (let i = 0; i < 3; i++) {
      void wire.request('GET', '/')
      await new Promise((resolve) => setTimeout(resolve, 15))
      wire.close()
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
    const last = await wire.request('GET', '/')
    wire.close()
    return last.status === 0 ? 'no answer' : last.status >= 500 ? `status ${last.status}` : undefined
  }
  const replies: Reply[] = []
  for (let i = 0; i < 3; i++) replies.push(await wire.send(`GET / HTTP/1.1\r\nHost: h\r\n\r\n`, 3_000))
  wire.close()
  const statuses = replies.map(({ status }) => status).join(' ')
  const allowed = ['200 429 429']
  if (way === 'tempting' && what in TEMPTING) allowed.push(what === 'deny' ? '403 403 403' : '200 200 200')
  if (!allowed.includes(statuses)) return `${statuses}, not ${allowed.join(' or ')}`
  if (what === 'handler' && way === 'late' && replies[2]?.body !== 'late') return 'its answer was not waited for'
  return undefined
}

function optionsOf(target: Target, what: Function, way: Way): object {
  const fail = failing(way, what, target)
  const policy = { key: 'all', interval: '1h', cooldown: '1h' }
  // A logger receives warnings, so another function fails to cause one.
  const logger = Object.fromEntries(['trace', 'debug', 'info', 'warn', 'error', 'fatal'].map((level) => [level, fail]))
  if (what === 'logger') return { ...policy, limit: 1, logger, skip: failing('throws', 'skip', target) }
  if (what === 'listener') return { ...policy, limit: 1, skip: failing('throws', 'skip', target) }
  if (what === 'plan') return { ...policy, plans: { free: 1, pro: 5 }, plan: fail }
  if (what === 'requestWasSuccessful') return { ...policy, limit: 1, skipFailedRequests: true, requestWasSuccessful: fail }
  return { ...policy, limit: 1, [what]: fail }
}

const NONSENSE: readonly unknown[] = [Number.NaN, {}, [], -1, 'yes', null, Symbol('x')]

function failing(way: Way, what: Function, target: Target): (...args: never[]) => unknown {
  const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  let calls = 0
  switch (way) {
    case 'throws':
      return () => {
        throw new Error('boom')
      }
    case 'rejects':
      return () => Promise.reject(new Error('boom'))
    case 'rejects late':
    case 'gone':
      return () => later(way === 'gone' ? 60 : 20).then(() => Promise.reject(new Error('boom')))
    case 'never':
      return () => new Promise(() => {})
    case 'nonsense':
      // The return value of a handler has no meaning, because it answers the request itself.
      return (...args) => (what === 'handler' ? respond(target, args) : NONSENSE[calls++ % NONSENSE.length])
    case 'late':
      return (...args) => later(20).then(() => (what === 'handler' ? respond(target, args) : GOOD[what]))
    case 'tempting':
      return (...args) => Promise.resolve(what === 'handler' ? respond(target, args) : (TEMPTING[what] ?? GOOD[what]))
  }
}

function respond(target: Target, args: readonly unknown[]): void {
  const [first, second] = args as [{ body: unknown }, { send(body: string): void; end(body: string): void }]
  if (target.startsWith('koa')) first.body = 'late'
  else if (target.startsWith('fastify')) second.send('late')
  else second.end('late')
}
