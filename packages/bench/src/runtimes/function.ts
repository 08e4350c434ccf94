// A server process that is frozen between its requests, like a function of a platform that runs one only while it handles a request.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Coordination } from '@weir/core'
import { throttle } from '@weir/express'
import express from 'express'
import { input } from '../harness/child.ts'
import { type Place, storeAt } from '../stores/place.ts'

export interface FunctionInput {
  readonly place: Place
  readonly coordination: Coordination
  readonly afterFreeze: 'sync' | 'continue'
  /** Default: the policy's. */
  readonly failMode?: 'closed'
  /** Milliseconds. Default: the policy's. */
  readonly storeTimeout?: number
  readonly limit: number
  /** The interval, in milliseconds. */
  readonly interval: number
}

/** The answer to a request. */
export interface FunctionAnswer {
  readonly allowed: boolean
  /** When it was decided, by the wall clock. */
  readonly at: number
}

/** The events of a process. */
export interface FunctionEvents {
  /** The errors of each `storeDown` event. */
  readonly storeDown: readonly string[]
  readonly syncFailed: number
}

const { place, coordination, afterFreeze, failMode, storeTimeout, limit, interval } = input<FunctionInput>()
const storeDown: string[] = []
let syncFailed = 0

const answer = (allowed: boolean): FunctionAnswer => ({ allowed, at: Date.now() })
const middleware = throttle({
  key: 'all',
  limit,
  interval,
  coordination,
  store: await storeAt(place),
  ...(failMode !== undefined && { failMode }),
  ...(storeTimeout !== undefined && { storeTimeout }),
  afterFreeze,
  handler: (_req, res) => res.status(429).json(answer(false)),
})
middleware.throttler.on('storeDown', ({ cause }) => void storeDown.push(cause instanceof Error ? cause.message : String(cause)))
middleware.throttler.on('syncFailed', () => void syncFailed++)
middleware.throttler.on('warning', () => {})

const app = express()
app.get('/events', (_req, res) => void res.json({ storeDown, syncFailed } satisfies FunctionEvents))
app.use(middleware)
app.use((_req, res) => void res.json(answer(true)))
const server = createServer(app)
// The platform's connection to a function outlives its freezes.
server.keepAliveTimeout = 0
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
process.stdin.resume()
process.stdin.once('end', () => process.exit())
