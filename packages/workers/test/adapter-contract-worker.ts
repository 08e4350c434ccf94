// A Worker that runs cases of the adapter contract. Their applications are behind its entrances, to which the cases connect.
import { request as openRequest, type RequestOptions, type Server } from 'node:http'
import { type AdapterUnderTest, adapterContract, handlerUnderTest } from '@weir/testing'
import { type ThrottleOptions, throttle } from '@weir/web'
import { durableObjectStore } from '../src/index.ts'
import { bindingOf, type HubNamespace } from '../src/platform.ts'
import { ABILITIES, type CaseToRun, titleOf, VARIANTS } from './adapter-contract-cases.ts'

export { WeirHub } from '../src/index.ts'

const { waitUntil } = process.getBuiltinModule('cloudflare:workers' as 'node:process') as unknown as {
  waitUntil(promise: Promise<unknown>): void
}

type Handler = (request: Request) => Response | Promise<Response>

const applications = new Map<string, (request: Request) => Promise<Response>>()
/** Entrances without an application, and the port of each. */
let entrances: Map<string, number> | undefined
/** The port of the relay. */
let relay = 0

/** The contract's application: a handler, wrapped by each limit in turn. */
const adapter: AdapterUnderTest<Request> = {
  ...ABILITIES,
  async start(inputs, { work }) {
    for (const input of inputs) if ('clock' in input) Object.assign(input.clock as object, { hold })
    const limits = inputs.map((input) => throttle(input as ThrottleOptions))
    for (const { throttler } of limits) throttler.start()
    const [entrance, port] = entrances?.entries().next().value ?? ['', 0]
    if (!entrances?.delete(entrance)) throw new Error('All entrances have an application. Start workerd with more of them.')

    const ends = new WeakMap<Request, () => void>()
    const routes = handlerUnderTest(limits, { work: () => keptOpen(work()), atEnd: (request, run) => void ends.set(request, run) })
    const handler: Handler = (request) => {
      // workerd makes no valid URL of the target `*`.
      if (!URL.canParse(request.url)) return new Response(null, { status: 400 })
      if (new URL(request.url).pathname !== '/slow') return routes(request)
      limits.at(-1)?.decision(request)?.used?.({ tokens: 4 })
      return new Response(endless())
    }
    const limited = limits.reduceRight<Handler>((inner, limit) => limit(inner), handler)
    const movesClock = inputs.some((input) => 'clock' in input)
    applications.set(entrance, async (request) => {
      const response = limited(request)
      // The runtime doesn't see timers of the case's clock.
      await (movesClock ? keptOpen(Promise.resolve(response)) : response)
      ends.get(request)?.()
      return response
    })

    const requests = new Set<object>()
    const server = {
      address: () => ({ port }),
      getConnections: (callback: (error: null, count: number) => void) => callback(null, requests.size),
    }
    return {
      server: server as unknown as Server,
      throttlers: limits.map(({ throttler }) => throttler),
      request: ({ headers, ...options }: RequestOptions) => {
        // Cloudflare sets this header for the connections of its clients.
        const sent = { ...options, headers: { 'cf-connecting-ip': options.localAddress ?? '127.0.0.1', ...headers } }
        const relayed = { 'x-request': encodeURIComponent(JSON.stringify(sent)) }
        const request = openRequest({ host: '127.0.0.1', port: relay, method: options.method ?? 'GET', headers: relayed })
        requests.add(request)
        return request.on('close', () => void requests.delete(request))
      },
      close: async () => {
        applications.delete(entrance)
        entrances?.set(entrance, port)
      },
    }
  },
  header: (request, name) => request.headers.get(name) ?? undefined,
  answering: (text) => (_request: Request, response: Response) => new Response(text, response),
  begun: () => {},
  status: ([, response]) => (response as Response).status,
}

/** Answers to an error as the error handlers of frameworks do. */
function errorHandler(error: Error & { status?: number; headers?: Record<string, string> }): Response {
  return new Response(error.message, { status: error.status ?? 500, headers: error.headers ?? {} })
}

/** A body that never ends. It has a piece every few milliseconds, because workerd may otherwise not notice that a client has left. */
function endless(): ReadableStream {
  return new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 10))
      controller.enqueue(new TextEncoder().encode('wait'))
    },
  })
}

/** Keeps the running request from being ended as hung, because it waits for something that another request does. */
async function keptOpen<T>(promise: Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, 1_000)
  try {
    return await promise
  } finally {
    clearInterval(timer)
  }
}

/** Does the same as the function of the clock that throttlers have in Workers. */
function hold(): () => void {
  let release = (): void => {}
  waitUntil(keptOpen(new Promise<void>((resolve) => void (release = resolve))))
  return () => release()
}

let stores = 0
/** A store with objects of its own. */
function ownStore(): ReturnType<typeof durableObjectStore> {
  const own = ++stores
  const all = bindingOf('WEIR') as HubNamespace
  // A busy machine is no outage.
  return durableObjectStore(
    { idFromName: (name: string) => all.idFromName(`${own} ${name}`), get: (id) => all.get(id) },
    { timeout: '30s' },
  )
}

const cases = new Map<string, () => Promise<void>>()
for (const variant of VARIANTS)
  adapterContract(variant, adapter, {
    describe: (_, define) => define(),
    test: (title, run) => void cases.set(titleOf(variant, title), run),
    ...(variant === 'with a Durable Object' && { store: ownStore }),
  })

export default {
  async fetch(request: Request): Promise<Response> {
    const entrance = request.headers.get('x-entrance')
    if (entrance !== null) return applications.get(entrance)?.(request).catch(errorHandler) ?? new Response('none', { status: 404 })
    const given = (await request.json()) as CaseToRun
    relay = given.relay
    entrances ??= new Map(given.entrances)
    try {
      const run = cases.get(given.title)
      if (run === undefined) throw new Error(`The Worker has no case "${given.title}".`)
      await run()
      return new Response('passed')
    } catch (error) {
      return new Response((error as Error).stack, { status: 500 })
    }
  },
}
