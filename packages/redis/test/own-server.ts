import { RedisServer, until } from '@weir/tooling/redis-servers'
import { Redis } from 'ioredis'
import { afterAll, beforeAll } from 'vitest'

/** The parts that the tests of a file share: a server, and a client to inspect it, which connects at first use. Both end with the tests. */
export interface OwnServer {
  readonly server: RedisServer
  readonly admin: Redis
  /** Waits until this many processes of a store with one shard receive announcements, which may be after their first replies. */
  listening(namespace: string, nodes: number): Promise<void>
}

export function ownServer(): OwnServer {
  let own: Pick<OwnServer, 'server' | 'admin'>
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
    listening(namespace, nodes) {
      const channel = `${namespace}:1:0`
      return until(async () => Object.values(await own.admin.pubsub('NUMSUB', channel))[1] === nodes, 'all listen')
    },
  }
}
