// The Worker of the measurement, bundled from the built packages.
import { throttle } from '@weir/web'
import { durableObjectStore, WeirHub } from '@weir/workers'

const INTERVAL = 10_000
const LIMIT = 1_000

interface State {
  readonly storage: unknown
}

/** The hub, with the number of its calls. */
export class CountedHub extends WeirHub {
  #calls = 0

  override sync(...given: Parameters<WeirHub['sync']>): ReturnType<WeirHub['sync']> {
    this.#calls++
    return super.sync(...given)
  }

  async calls(): Promise<number> {
    return this.#calls
  }
}

const { DurableObject } = process.getBuiltinModule('cloudflare:workers' as 'node:process') as unknown as {
  readonly DurableObject: new (state: State, env: unknown) => object
}

/** The counter of limiters that ask an object about each request. */
export class Counter extends DurableObject {
  #interval = 0
  #units = 0

  async take(): Promise<boolean> {
    const interval = Math.floor(Date.now() / INTERVAL)
    if (interval !== this.#interval) this.#units = 0
    this.#interval = interval
    return ++this.#units <= LIMIT
  }
}

interface Namespace<T> {
  idFromName(name: string): unknown
  get(id: unknown): T
}

interface Env {
  readonly WEIR: Namespace<{ calls(): Promise<number> }>
  readonly COUNTER: Namespace<{ take(): Promise<boolean> }>
}

const store = durableObjectStore('WEIR')
/** The time of the decision, because on a busy machine the response may arrive in a later interval. */
const ok = () => new Response(String(Date.now()))
const all = () => 'all'
const limited = throttle({ name: 'limited', key: all, limit: LIMIT, interval: INTERVAL, store })(ok)
const open = throttle({ name: 'open', key: all, limit: 1e9, interval: INTERVAL, store })(ok)

export default {
  async fetch(request: Request, { WEIR, COUNTER }: Env): Promise<Response> {
    switch (new URL(request.url).pathname) {
      case '/limited':
        return limited(request)
      case '/open':
        return open(request)
      case '/each':
        return (await COUNTER.get(COUNTER.idFromName('all')).take()) ? ok() : new Response('no', { status: 429 })
      case '/calls':
        return Response.json(await WEIR.get(WEIR.idFromName('weir 0')).calls())
      default:
        return ok()
    }
  },
}
