// Loaded before each published test file of @fastify/rate-limit. Each registration without a `store` gets ours, even one with `redis`.
import '../fastify-rate-limit/time.ts'
import Module, { createRequire } from 'node:module'
import { memoryStore } from '@weir/core'
import type { FastifyInstance } from 'fastify'
import { fastifyRateLimitStore } from '../../src/fastify-rate-limit.ts'
import { beginAnHour } from '../fastify-rate-limit/time.ts'

const require = createRequire(import.meta.url)
const index = require.resolve('@fastify/rate-limit')
const plugin: (fastify: FastifyInstance, settings: object) => Promise<void> = require(index)

class NoRedis {
  async flushall() {}
  async quit() {}
}

// The test files belong to a package that depends on neither, and our store needs no Redis.
const loaded = new Map<string, unknown>([
  ['fastify', require('fastify')],
  ['ioredis', NoRedis],
])
const loader = Module as unknown as { _load(request: string, ...rest: unknown[]): unknown }
const load = loader._load
loader._load = (request, ...rest) => loaded.get(request) ?? load(request, ...rest)

const servers = new WeakSet<object>()
async function withOurStore(fastify: FastifyInstance, settings: object): Promise<void> {
  if (!servers.has(fastify.server)) beginAnHour()
  servers.add(fastify.server)
  await plugin(fastify, 'store' in settings ? settings : { ...settings, store: fastifyRateLimitStore(memoryStore()) })
}
const cached = require.cache[index]
if (cached !== undefined) cached.exports = Object.assign(withOurStore, plugin)
