import { connect } from 'node:net'
import { faultProxy } from '@weir/testing'
import { RedisServer } from '@weir/tooling/redis-servers'
import { startCluster, startSentinels } from '@weir/tooling/redis-topologies'
import { startEtcd } from './etcd-stage.ts'
import { startPostgres } from './postgres-stage.ts'
import { sleep } from './protocol.ts'
import { startSecured, startSecuredCluster } from './secured.ts'
import type { Stage } from './servers.ts'

export type StageName = 'server' | 'proxy' | 'sentinels' | 'cluster' | 'secured' | 'secured-cluster' | 'postgres' | 'etcd'

const MAKERS: Readonly<Record<StageName, () => Promise<Stage>>> = {
  server: async () => {
    const server = await RedisServer.start()
    return { target: { port: server.port }, servers: [server], stop: () => server.stop() }
  },
  proxy: async () => {
    const server = await RedisServer.start()
    const proxy = await faultProxy({ port: server.port })
    return {
      target: { port: proxy.port },
      servers: [server],
      proxy,
      stop: async () => {
        await proxy.close()
        await server.stop()
      },
    }
  },
  sentinels: async () => {
    const setup = await startSentinels()
    const sentinels = setup.sentinels.map(({ port }) => ({ host: '127.0.0.1', port }))
    return { target: { sentinels, name: setup.name }, servers: setup.servers, primary: () => setup.primary(), stop: () => setup.stop() }
  },
  cluster: async () => {
    // A node timeout so short that a failover takes seconds.
    const setup = await startCluster(2_000)
    const cluster = setup.servers.map(({ port }) => ({ host: '127.0.0.1', port }))
    return { target: { cluster }, servers: setup.servers, stop: () => setup.stop() }
  },
  secured: startSecured,
  'secured-cluster': startSecuredCluster,
  postgres: startPostgres,
  etcd: startEtcd,
}

export function openStage(name: StageName): Promise<Stage> {
  return MAKERS[name]()
}

/** Resolves when a server accepts writes. It tries every 10 ms on a new connection. */
export async function writable(port: number, patience = 30_000): Promise<void> {
  for (const deadline = Date.now() + patience; ; ) {
    if (await takesWrite(port)) return
    if (Date.now() > deadline) throw new Error(`The server on port ${port} took no writes within ${patience} ms.`)
    await sleep(10)
  }
}

function takesWrite(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('SET fault-probe 1 PX 1000\r\n'))
    const finish = (result: boolean): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(result)
    }
    const timer = setTimeout(() => finish(false), 1_000)
    socket.on('data', (data) => finish(String(data).startsWith('+OK')))
    socket.on('error', () => finish(false))
    socket.on('close', () => finish(false))
  })
}
