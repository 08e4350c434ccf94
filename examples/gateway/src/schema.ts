import { z } from 'zod'
import { isStore } from './store.ts'

const HTTP_URL = 'an http:// or https:// address such as http://127.0.0.1:3000'

const STORE = 'it must be an address of Redis (redis://, rediss://), of PostgreSQL (postgres://) or of etcd (http://, https://), or ipc'
const PROCESSES = 'it must be a whole number of processes from 1 to 256'

const httpUrl = z.string(`it must be ${HTTP_URL}`).refine((text) => isUrl(text, ['http:', 'https:']), `it must be ${HTTP_URL}`)
const prefix = z.string('it must be a path that begins with /').startsWith('/', 'it must be a path that begins with /')
const keySource = z.union(
  [z.enum(['all', 'ip', 'route']), z.strictObject({ header: z.string().min(1) })],
  'it must be all, ip, route, { header: name }, or a list of these',
)

/** One limit. Weir checks the ranges of its numbers when the throttler is made. */
const limit = z.strictObject({
  name: z.string('it must be a name of its own, such as client').min(1),
  key: z.union([keySource, z.array(keySource).min(1)], 'it must be all, ip, route, { header: name }, or a list of these'),
  match: z.union([z.string(), z.array(z.string()).min(1)], 'it must be a pattern such as "POST /api/*rest", or a list of these').optional(),
  limit: z.number('it must be a number of requests'),
  interval: z.union([z.string(), z.number()], 'it must be a time such as 10s, 1m or 1h'),
  spans: z.number('it must be a whole number of at least 2').optional(),
  cooldown: z.union([z.string(), z.number()], 'it must be a time such as 10s, 1m or 1h').optional(),
  cost: z.number('it must be a number above 0').optional(),
  dryRun: z.boolean('it must be true or false').optional(),
})

const route = z.strictObject({
  prefix,
  upstream: httpUrl,
  /** Replaces the prefix on the way to the upstream. Default: the prefix itself. */
  rewrite: prefix.optional(),
})

/** The shape of the configuration file. */
export const schema = z.strictObject({
  listen: z.strictObject({
    host: z.string('it must be an address such as 127.0.0.1 or 0.0.0.0').default('127.0.0.1'),
    port: z
      .int('it must be a port from 0 to 65535')
      .min(0, 'it must be a port from 0 to 65535')
      .max(65_535, 'it must be a port from 0 to 65535'),
  }),
  routes: z.array(route, 'it must be a list of { prefix, upstream }').min(1, 'it must name at least one upstream'),
  store: z.string(STORE).refine(isStore, STORE).optional(),
  /** The number of processes that listen on the port. Several need a store. Default: the number of cores with `ipc`, otherwise one. */
  processes: z.int(PROCESSES).min(1, PROCESSES).max(256, PROCESSES).optional(),
  trustProxy: z.array(z.string(), 'it must be a list of addresses or networks').default([]),
  limits: z.array(limit, 'it must be a list of limits').min(1, 'it must hold at least one limit'),
  /** Seconds for which a closing gateway still answers, so that load balancers notice its health. */
  drainSeconds: z.number('it must be a number of seconds').min(0, 'it must be at least 0').default(0),
  /** Seconds for which it then waits for open requests. */
  shutdownSeconds: z.number('it must be a number of seconds').positive('it must be above 0').default(10),
})

export type Config = z.infer<typeof schema>
export type LimitConfig = Config['limits'][number]

function isUrl(text: string, protocols: readonly string[]): boolean {
  return URL.canParse(text) && protocols.includes(new URL(text).protocol)
}
