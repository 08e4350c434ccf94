import dns from 'node:dns'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { createThrottler, type PolicyOptions, type Throttler, tokenBucket } from '@weir/core'
import { header } from '@weir/core/http'
import { snapshot } from '@weir/core/inspect'
import { appOf } from './apps.ts'
import {
  type Adapter,
  type Answer,
  ARRIVED_HEADER,
  BOOKS,
  BOOKS_SPANS,
  booksInterval,
  type FromNode,
  KEY_HEADER,
  LIMITED,
  monotonic,
  type Order,
  type Rule,
} from './protocol.ts'
import { storeOf } from './store-of.ts'

/**
 * One process of the fleet: a service behind one of the adapters, in its own process or worker thread, that obeys its parent. It
 * can make a new throttler while the process stays.
 */
const adapter = (isMainThread ? process.argv[2] : workerData) as Adapter

let throttler: Throttler | undefined
let rule: Rule | undefined
let handler: RequestListener = (_request, response) => void response.writeHead(503).end()
const resolvable = new Set<string>()

const server = createServer((request, response) => {
  response.setHeader(ARRIVED_HEADER, String(monotonic()))
  handler(request, response)
})
server.keepAliveTimeout = 600_000

function tell(message: FromNode): void {
  if (parentPort !== null) parentPort.postMessage(message)
  // Without a callback a broken channel is an 'error' event, which would end the process with a stack trace.
  else if (process.connected) process.send?.(message, () => {})
}

function policiesOf({ limit, interval, spans, cooldown, bucket, coordination, failMode, books = booksInterval() }: Rule): PolicyOptions[] {
  const key = header(KEY_HEADER)
  return [
    {
      name: LIMITED,
      key,
      limit,
      interval,
      spans,
      ...(cooldown !== undefined && { cooldown }),
      ...(bucket && { algorithm: tokenBucket() }),
      ...(coordination !== undefined && { coordination }),
      ...(failMode !== undefined && { failMode }),
    },
    // With `periodic` every count is sent at the end of its span. The default would not send counts far below the limit.
    { name: BOOKS, key, limit: 1e9, interval: books, spans: BOOKS_SPANS, coordination: 'periodic', failMode: 'open' },
  ]
}

/** Hides a name until it becomes resolvable. Node.js reads `dns.lookup` at each connection. */
function hideName(name: string): void {
  const { lookup } = dns
  const hidden = (host: string, options: object, callback: (...result: unknown[]) => void): void => {
    if (host !== name || resolvable.has(name)) {
      lookup(host === name ? '127.0.0.1' : host, options as never, callback as never)
      return
    }
    const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND', errno: -3008, syscall: 'getaddrinfo' })
    setImmediate(() => callback(error))
  }
  dns.lookup = hidden as unknown as typeof dns.lookup
}

async function renew(wanted: Rule): Promise<void> {
  await throttler?.close()
  rule = wanted
  const { namespace, target, closeTimeout = 1_000, unresolved } = wanted
  if (unresolved !== undefined) hideName(unresolved)
  const made = createThrottler({
    policies: policiesOf(wanted),
    store: storeOf(target, namespace),
    closeTimeout,
  })
  made.on('storeDown', ({ cause }) => tell({ type: 'state', state: 'storeDown', at: monotonic(), cause: String(cause) }))
  made.on('storeUp', () => tell({ type: 'state', state: 'storeUp', at: monotonic() }))
  handler = await appOf(adapter, made as Throttler)
  throttler = made.start() as Throttler
}

async function obey(order: Order): Promise<Partial<Answer>> {
  switch (order.type) {
    case 'renew':
      await renew(order.rule)
      return {}
    case 'limit':
      if (rule === undefined) throw new Error('no rule yet')
      rule = { ...rule, limit: order.limit }
      throttler?.update(policiesOf(rule))
      return {}
    case 'resolve':
      resolvable.add(rule?.unresolved ?? '')
      return {}
    case 'snapshot':
      return throttler === undefined ? {} : { snapshot: snapshot(throttler) }
    case 'close': {
      const begun = monotonic()
      await throttler?.close()
      throttler = undefined
      return { took: monotonic() - begun }
    }
    case 'stall':
      for (const end = monotonic() + order.ms; monotonic() < end; );
      return {}
    case 'heap': {
      const resources: Record<string, number> = {}
      for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
      const { gc } = globalThis as { gc?: () => void }
      gc?.()
      return { heap: { used: process.memoryUsage().heapUsed, resources } }
    }
  }
}

function hear({ id, ...order }: Order & { id: number }): void {
  obey(order as Order).then(
    (result) => tell({ type: 'answer', id, ...result }),
    (error: unknown) => tell({ type: 'answer', id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
}

if (parentPort !== null) parentPort.on('message', hear)
else {
  process.on('message', hear)
  // The parent has ended for any reason.
  process.on('disconnect', () => process.exit(0))
}
server.listen(0, '127.0.0.1', () => tell({ type: 'ready', port: (server.address() as AddressInfo).port }))
