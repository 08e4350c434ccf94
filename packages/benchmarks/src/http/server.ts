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
  readonly contender: 'bare' | 'bare again' | 'weir' | 'weir, Redis' | 'peer' | 'peer, Redis'
  /** Requests per hour and key. */
  readonly limit: number
  readonly redis?: number
}

const HOUR = 3_600_000
const { framework, contender, limit, redis } = input<ServerInput>()
const client = contender.endsWith('Redis') ? new Redis({ port: redis as number, host: '127.0.0.1' }) : undefined
const store = client === undefined ? {} : { store: redisStore(client) }
const policy = { limit, interval: '1h', key: 'ip', ...store } as const

const servers = {
  express: async (): Promise<Server> => {
    const app = express()
    if (contender.startsWith('weir')) app.use(expressThrottle(policy))
    if (contender.startsWith('peer')) {
      const sendCommand = (command: string, ...args: string[]) => (client as Redis).call(command, ...args) as Promise<number>
      const shared = client === undefined ? {} : { store: new RedisStore({ sendCommand }) }
      app.use(rateLimit({ windowMs: HOUR, limit, standardHeaders: 'draft-8', legacyHeaders: false, ...shared }))
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
    app.use((ctx) => {
      ctx.body = 'Hello, world'
    })
    return createServer(app.callback())
  },
}

const server = await servers[framework]()
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => report({ port: (server.address() as AddressInfo).port }))

// One line asks for the CPU time that this process has used, in microseconds.
process.stdin.on('data', () => {
  const { user, system } = process.cpuUsage()
  report({ cpu: user + system })
})
process.stdin.on('end', () => process.exit(0))
