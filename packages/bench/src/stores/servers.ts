import { type IpcService, serveIpc } from '@weir/core/ipc'
import { EtcdServer, NO_ETCD } from '@weir/tooling/etcd-servers'
import { findPostgres, PostgresServer } from '@weir/tooling/postgres-servers'
import { RedisServer } from '@weir/tooling/redis-servers'
import type { Place } from './place.ts'

/** A store in which processes meet, and its faults. */
export interface Meeting {
  readonly place: Place
  /** The process of the server, if it is a separate one. */
  readonly server?: number | undefined
  /** Faults of the server. Absent if there is no server. */
  readonly faults?: {
    /** Ends the server immediately. */
    kill(): Promise<unknown>
    restart(): Promise<unknown>
    /** Makes the server hang. */
    pause(): unknown
    resume(): unknown
  }
  stop(): unknown
}

/** The stores that can be measured on this machine, by name. */
export const MEETINGS: Readonly<Record<string, () => Promise<Meeting | undefined>>> = {
  async memory() {
    return { place: { kind: 'memory' }, stop: () => {} }
  },
  async ipc() {
    const service: IpcService = serveIpc()
    return { place: { kind: 'ipc' }, server: process.pid, stop: () => service.close() }
  },
  async redis() {
    const server = await RedisServer.start()
    return {
      place: { kind: 'redis', url: server.url },
      server: server.pid,
      faults: { kill: () => server.kill(), restart: () => server.start(), pause: () => server.pause(), resume: () => server.resume() },
      stop: () => server.stop(),
    }
  },
  async postgres() {
    if (findPostgres() === undefined) return undefined
    const server = await PostgresServer.start()
    return {
      place: { kind: 'postgres', url: server.url },
      server: server.pid,
      faults: { kill: () => server.kill(), restart: () => server.start(), pause: () => server.pause(), resume: () => server.resume() },
      stop: () => server.stop(),
    }
  },
  async etcd() {
    if (NO_ETCD !== undefined) return undefined
    const server = await EtcdServer.start()
    return {
      place: { kind: 'etcd', endpoint: server.url },
      server: server.pid,
      faults: {
        kill: () => server.kill(),
        restart: () => server.start(),
        pause: () => server.pause(),
        resume: () => server.resume(),
      },
      stop: () => server.stop(),
    }
  },
}
