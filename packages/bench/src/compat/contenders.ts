import type { Connections, Handles, Kind, Limit } from './limit.ts'

type Middleware = (kind: Kind, limit: Limit, connections: Connections) => Promise<Handles>

/**
 * Middleware, called as a function with the parts of a request that it reads, so that no socket is measured. A process loads only the one
 * that it measures.
 */
export const MIDDLEWARE = {
  'express-rate-limit': async () => (await import('./express.ts')).express,
  '@nestjs/throttler': async () => (await import('./nest.ts')).nest,
  '@fastify/rate-limit': async () => (await import('./fastify.ts')).fastifyPlugin,
  'better-auth': async () => (await import('./better-auth.ts')).auth,
} satisfies Record<string, () => Promise<Middleware>>
export type MiddlewareName = keyof typeof MIDDLEWARE
