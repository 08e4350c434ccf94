import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { throttle } from '@weir/express'
import type { RequestHandler } from 'express'
import { slowDown } from 'express-slow-down'
import { input, report } from '../harness/child.ts'

/** Requests of one client that middleware delays. */
export interface SlowInput {
  readonly contender: keyof typeof CONTENDERS
  /** Requests that are all made at once. */
  readonly requests: number
}

export interface SlowResult {
  /** Microseconds of CPU time for a request, from its arrival until it continues. */
  readonly cpu: number
  /** Bytes of memory for each request while all are delayed, without the request's own memory. Only with `--expose-gc`. */
  readonly bytes: number
}

const DELAY = 500
const HOUR = 3_600_000

const CONTENDERS = {
  weir: (requests: number): RequestHandler =>
    throttle({
      policies: [{ key: 'all', limit: 1, interval: HOUR, coordination: 'local', delay: () => DELAY }],
      queue: { maxWaiting: 2 * requests, maxWaitingPerKey: 2 * requests },
    }),
  'express-slow-down': (): RequestHandler =>
    slowDown({ windowMs: HOUR, delayAfter: 1, delayMs: () => DELAY, keyGenerator: () => 'all', validate: false }),
} as const

const { contender, requests } = input<SlowInput>()
const handler = CONTENDERS[contender](requests)
const socket = new Socket()
// The first request is not delayed, and the code for delays is loaded with the second one.
for (let i = 0; i < 2; i++) await passes(...made())
const messages = Array.from({ length: requests }, made)
const before = used()
const cpuBefore = process.cpuUsage()
const all = messages.map(([request, response]) => passes(request, response))
await new Promise((resolve) => setTimeout(resolve, 0))
const bytes = (used() - before) / requests
await Promise.all(all)
const { user, system } = process.cpuUsage(cpuBefore)
report({ cpu: (user + system) / requests, bytes } satisfies SlowResult)
process.exit(0)

type Messages = [request: IncomingMessage, response: ServerResponse]

function made(): Messages {
  const request = new IncomingMessage(socket)
  request.url = '/'
  request.method = 'GET'
  return [request, new ServerResponse(request)]
}

function passes(...[request, response]: Messages): Promise<void> {
  return new Promise((resolve, reject) => {
    handler(request as never, response as never, (error?: unknown) => (error === undefined ? resolve() : reject(error)))
  })
}

function used(): number {
  const { gc } = globalThis as { gc?: () => void }
  gc?.()
  return gc === undefined ? 0 : process.memoryUsage().heapUsed
}
