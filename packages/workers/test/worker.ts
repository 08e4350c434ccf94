// A Worker for the tests, bundled and run in workerd. Everything is made at module level, as in an application.
import { concurrency, createThrottler, fixedWindow, throttle, tokenBucket } from '@weir/web'
import { durableObjectStore, WeirHub } from '../src/index.ts'

/** An object that can be ended from outside. */
export class TestHub extends WeirHub {
  async abort(): Promise<void> {
    ;(this as unknown as { readonly ctx: { abort(why: string): void } }).ctx.abort('The test has ended this object.')
  }
}

/** An object that never starts. */
export class BrokenHub extends WeirHub {
  constructor(...given: ConstructorParameters<typeof WeirHub>) {
    super(...given)
    throw new Error('broken')
  }
}

interface Env {
  readonly WEIR: { idFromName(name: string): unknown; get(id: unknown): Record<string, (...values: unknown[]) => Promise<unknown>> }
}

const store = durableObjectStore('WEIR')
const key = (request: Request) => request.headers.get('x-key') ?? 'all'
/** On a busy machine, requests wait for the store instead of being decided without it. */
const exact = { failMode: 'closed', storeTimeout: '9s' } as const
const ok = () => new Response('ok')

const limits = {
  first: throttle({ name: 'first', key, limit: 3, interval: '1h', store }),
  background: throttle({ name: 'background', key, limit: 100, interval: '1h', store }),
  sharded: throttle({ name: 'sharded', key, limit: 100, interval: '1h', store: durableObjectStore('WEIR', { shards: 3 }) }),
  central: throttle({ name: 'central', key, limit: 20, interval: '1h', coordination: 'central', store, ...exact }),
  leased: throttle({ name: 'leased', key, limit: 20, interval: '1h', coordination: 'leased', store, ...exact }),
  delayed: throttle({ name: 'delayed', key, algorithm: tokenBucket(), limit: 1, interval: '200ms', delay: '9s', store }),
  closed: throttle({ name: 'closed', key, limit: 20, interval: '1h', failMode: 'closed', store: durableObjectStore('BROKEN') }),
  open: throttle({ name: 'open', key, limit: 20, interval: '1h', failMode: 'open', store: durableObjectStore('BROKEN') }),
  slots: throttle({ name: 'slots', key, algorithm: concurrency(), limit: 2 }),
  missing: throttle({ name: 'missing', key, limit: 20, interval: '1h', store: durableObjectStore('NONE') }),
}
const handlers = new Map(Object.entries(limits).map(([name, limit]) => [name, limit(ok)]))
handlers.set('slots', limits.slots(limits.background(ok)))
const down: string[] = []
limits.missing.throttler.on('storeDown', ({ cause }) => down.push(String(cause)))
const warnings: string[] = []
for (const name of ['slots', 'delayed', 'background'] as const)
  limits[name].throttler.on('warning', ({ error }) => warnings.push(`${name}: ${error.message}`))
const waiting = createThrottler({ policies: [{ name: 'waiting', limit: 3, interval: '500ms', algorithm: fixedWindow() }], store })

export default {
  async fetch(request: Request, { WEIR }: Env): Promise<Response> {
    const [, name = '', action] = new URL(request.url).pathname.split('/')
    const limit = limits[name as keyof typeof limits]
    if (name === 'call') {
      const { object, method, values } = (await request.json()) as { object: string; method: string; values: unknown[] }
      // JSON has null instead of undefined.
      const given = values.map((value) => value ?? undefined)
      return Response.json((await WEIR.get(WEIR.idFromName(object))[method]?.(...given)) ?? null)
    }
    if (action === 'peek') return Response.json(await limit.peek(request))
    if (action === 'block') limit.throttler.block(key(request), '1h')
    if (action === 'flush' || action === 'block') return Response.json(await limit.throttler.flush({ timeout: '5s' }))
    if (name === 'waiting') return Response.json(await waiting.tryAcquire(key(request), { timeout: '9s' }))
    if (name === 'down') return Response.json(down)
    if (name === 'warnings') return Response.json(warnings)
    if (name === 'abort') {
      await WEIR.get(WEIR.idFromName('weir 0'))
        ['abort']?.()
        .catch(() => {})
      return ok()
    }
    return (await handlers.get(name)?.(request)) ?? new Response('none', { status: 404 })
  },
}
