import { RedisServer } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { afterAll, beforeAll } from 'vitest'

/** What the tests of a file share: a server, and a client to look at it, which connects when it is used. Both end with them. */
export interface OwnServer {
  readonly server: RedisServer
  readonly admin: Redis
}

export function ownServer(): OwnServer {
  let own: OwnServer
  beforeAll(async () => {
    const server = await RedisServer.start()
    own = { server, admin: new Redis(server.port, { lazyConnect: true }) }
  })
  afterAll(async () => {
    own.admin.disconnect()
    await own.server.stop()
  })
  return {
    get server() {
      return own.server
    },
    get admin() {
      return own.admin
    },
  }
}
