import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastifyRateLimit from '@fastify/rate-limit'
import { throttle as expressThrottle } from '@weir/express'
import weir from '@weir/fastify'
import { throttle as koaThrottle } from '@weir/koa'
import { redisStore } from '@weir/redis'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { fastify } from 'fastify'
import { Redis } from 'ioredis'
import Koa from 'koa'
import koaRatelimit from 'koa-ratelimit'
import { RedisStore } from 'rate-limit-redis'
import { input, report } from '../harness/child.ts'

export interface ServerInput {
  readonly framework: 'express' | 'fastify' | 'koa'
  readonly contender: 'bare' | 'bare again' | 'fields alone' | 'weir' | 'weir, Redis' | 'peer' | 'peer, Redis'
  /** Requests per hour and key. */
  readonly limit: number
  readonly redis?: number
}

const HOUR = 3_600_000
const { framework, contender, limit, redis } = input<ServerInput>()
const client = contender.endsWith('Redis') ? new Redis({ port: redis as number, host: '127.0.0.1' }) : undefined
const store = client === undefined ? {} : { store: redisStore(client) }
const policy = { limit, interval: '1h', key: 'ip', ...store } as const

// A contender with the unavoidable cost of any limiter that shows its limits to clients: the same fields and problem details,
// without a decision.
const byHand = contender === 'fields alone'
const rejecting = byHand && limit === 1
const details = JSON.stringify({
  type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  title: 'Request cannot be satisfied as assigned quota has been exceeded',
  status: 429,
  detail: 'Too many requests. Try again in 3600 seconds.',
  'violated-policies': ['default'],
})
let left = limit
function writeFields(set: (name: string, value: string) => unknown): void {
  set('RateLimit-Policy', '"default";q=1000000000;w=3600')
  set('RateLimit', `"default";r=${rejecting ? 0 : left--};t=3600`)
  if (!rejecting) return
  set('Retry-After', '3600')
  set('Cache-Control', 'no-store')
  set('Content-Type', 'application/problem+json')
}

const servers = {
  express: async (): Promise<Server> => {
    const app = express()
    if (contender.startsWith('weir')) app.use(expressThrottle(policy))
    if (contender.startsWith('peer')) {
      const sendCommand = (command: string, ...args: string[]) => (client as Redis).call(command, ...args) as Promise<number>
      const shared = client === undefined ? {} : { store: new RedisStore({ sendCommand }) }
      app.use(rateLimit({ windowMs: HOUR, limit, standardHeaders: 'draft-8', legacyHeaders: false, ...shared }))
    }
    if (byHand) {
      app.use((_, response, next) => {
        writeFields((name, value) => response.setHeader(name, value))
        if (!rejecting) return next()
        response.setHeader('Content-Length', details.length)
        response.writeHead(429).end(details)
      })
    }
    app.get('/', (_, response) => {
      response.send('Hello, world')
    })
    return createServer(app)
  },
  fastify: async (): Promise<Server> => {
    const app = fastify()
    if (contender.startsWith('weir')) await app.register(weir, policy)
    if (contender.startsWith('peer')) await app.register(fastifyRateLimit, { max: limit, timeWindow: HOUR, redis: client })
    if (byHand) {
      app.addHook('onRequest', (_, reply, next) => {
        writeFields((name, value) => reply.header(name, value))
        if (!rejecting) return next()
        reply.code(429).send(details)
      })
    }
    app.get('/', (_, reply) => {
      reply.send('Hello, world')
    })
    await app.ready()
    return app.server
  },
  koa: async (): Promise<Server> => {
    const app = new Koa()
    if (contender.startsWith('weir')) app.use(koaThrottle(policy))
    if (contender.startsWith('peer')) {
      const db = client === undefined ? ({ driver: 'memory', db: new Map() } as const) : ({ driver: 'redis', db: client as never } as const)
      app.use(koaRatelimit({ ...db, duration: HOUR, max: limit }))
    }
    if (byHand) {
      app.use((ctx, next) => {
        writeFields((name, value) => ctx.res.setHeader(name, value))
        if (!rejecting) return next()
        ctx.status = 429
        ctx.body = details
        return undefined
      })
    }
    app.use((ctx) => {
      ctx.body = 'Hello, world'
    })
    return createServer(app.callback())
  },
}

const server = await servers[framework]()
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => report({ port: (server.address() as AddressInfo).port }))

// Each line on standard input is a request for the CPU time of this process, in microseconds.
process.stdin.on('data', () => {
  const { user, system } = process.cpuUsage()
  report({ cpu: user + system })
})
process.stdin.on('end', () => process.exit(0))
