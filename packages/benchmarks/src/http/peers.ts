/** What each framework's servers are compared with. */
export const PEERS = { express: 'express-rate-limit', fastify: '@fastify/rate-limit', koa: 'koa-ratelimit' } as const
