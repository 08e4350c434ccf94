import { RedisServer } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'

let server: RedisServer | undefined
let open: Redis | undefined

/** A client of the tests' own server. */
export function client(): Redis {
  if (open === undefined) throw new Error('The server is not started.')
  return open
}

/** Starts the server, and returns a function that stops it. */
export async function startRedis(): Promise<() => Promise<void>> {
  server = await RedisServer.start()
  open = new Redis(server.url)
  return async () => {
    open?.disconnect()
    await server?.stop()
  }
}
