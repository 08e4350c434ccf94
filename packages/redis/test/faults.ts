import type { StoreContractFixture } from '@weir/testing'
import type { RedisServer } from '@weir/tooling/redis-servers'

type Servers = () => readonly RedisServer[] | Promise<readonly RedisServer[]>
type Fault = Required<Pick<StoreContractFixture, 'lose' | 'goAway'>>

/** Servers that lose their data. */
export function flushed(servers: Servers): Fault['lose'] {
  return async () => {
    for (const server of await servers()) await server.command('flushall')
  }
}

/** Servers that send no replies, and keep their data. */
export function hanging(servers: Servers): Fault['goAway'] {
  return async () => {
    const all = await servers()
    for (const server of all) server.pause()
    return () => {
      for (const server of all) server.resume()
    }
  }
}

/** A server that is killed, together with its data. */
export function killed(own: { readonly server: RedisServer }): Fault['goAway'] {
  return async () => {
    await own.server.kill()
    return () => own.server.start()
  }
}
