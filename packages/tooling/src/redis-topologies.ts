import { RedisServer, type RedisServerOptions, until } from './redis-servers.ts'

/** Three Sentinels that watch one primary with two replicas. */
export interface SentinelSetup {
  /** The name under which Sentinels watch the primary. */
  readonly name: string
  readonly sentinels: readonly RedisServer[]
  /** The servers, with the first primary first. */
  readonly servers: readonly RedisServer[]
  /** The server that is primary now. */
  primary(): Promise<RedisServer>
  stop(): Promise<void>
}

/** @param arguments_ - further arguments of the three redis-servers */
export async function startSentinels(arguments_: readonly string[] = []): Promise<SentinelSetup> {
  const name = 'weir-primary'
  const primary = await RedisServer.start({ arguments: arguments_ })
  const replicas = await Promise.all(
    [1, 2].map(() =>
      RedisServer.start({
        arguments: ['--replicaof', '127.0.0.1', String(primary.port), '--repl-diskless-sync-delay', '0', ...arguments_],
      }),
    ),
  )
  const servers = [primary, ...replicas]
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(name, primary.port)))
  await until(async () => {
    for (const sentinel of sentinels) {
      const state = await sentinel.command('info', 'sentinel')
      if (!state.includes('status=ok') || !state.includes('slaves=2') || !state.includes('sentinels=3')) return false
    }
    return (await primary.command('info', 'replication')).split('state=online').length === 3
  }, 'Sentinels know all servers')
  return {
    name,
    sentinels,
    servers,
    async primary() {
      const answer = await (sentinels[0] as RedisServer).command('sentinel', 'get-master-addr-by-name', name)
      const port = Number(answer.split('\n')[1])
      const found = servers.find((server) => server.port === port)
      if (found === undefined) throw new Error(`Sentinels name an unknown primary on port ${port}.`)
      return found
    },
    async stop() {
      await Promise.all([...sentinels, ...servers].map((server) => server.stop()))
    },
  }
}

async function startSentinel(name: string, primaryPort: number): Promise<RedisServer> {
  const config = [
    `sentinel monitor ${name} 127.0.0.1 ${primaryPort} 2`,
    `sentinel down-after-milliseconds ${name} 500`,
    `sentinel failover-timeout ${name} 3000`,
    '',
  ].join('\n')
  return await RedisServer.start({ sentinel: true, config })
}

/** A Cluster of three primaries with one replica each. */
export interface ClusterSetup {
  /** The servers, with the first primaries first. */
  readonly servers: readonly RedisServer[]
  stop(): Promise<void>
}

/**
 * @param nodeTimeout - milliseconds after which a silent node counts as failed. The default is long, because on a busy machine nodes may
 * be silent for seconds, and most tests need a Cluster without a failover.
 * @param more - further options of each server
 */
export async function startCluster(
  nodeTimeout = 30_000,
  more: () => RedisServerOptions | Promise<RedisServerOptions> = () => ({}),
): Promise<ClusterSetup> {
  const servers: RedisServer[] = []
  // The servers start one after the other, so that each has opened its bus port before the next one looks for a free port.
  for (let i = 0; i < 6; i++) {
    const options = await more()
    servers.push(
      await RedisServer.start({
        ...options,
        arguments: [
          '--cluster-enabled',
          'yes',
          '--cluster-node-timeout',
          String(nodeTimeout),
          '--cluster-config-file',
          'nodes.conf',
          '--repl-diskless-sync-delay',
          '0',
          ...(options.arguments ?? []),
        ],
      }),
    )
  }
  const primaries = servers.slice(0, 3)
  const ids = await Promise.all(servers.map((server) => server.command('cluster', 'myid')))
  for (const [i, server] of primaries.entries()) {
    const first = Math.ceil((i * 16_384) / 3)
    const last = Math.ceil(((i + 1) * 16_384) / 3) - 1
    await server.command('cluster', 'addslotsrange', String(first), String(last))
    await server.command('cluster', 'set-config-epoch', String(i + 1))
  }
  for (const server of servers.slice(1)) await server.command('cluster', 'meet', '127.0.0.1', String(servers[0]?.port))
  await until(async () => {
    for (const server of servers) if ((await server.command('cluster', 'nodes')).split('\n').length < 6) return false
    return true
  }, 'the nodes of the Cluster have met')
  for (const [i, server] of servers.slice(3).entries()) {
    const id = ids[i] as string
    await until(async () => (await server.command('cluster', 'replicate', id)) === 'OK', 'a replica has found its primary')
  }
  await until(async () => {
    for (const server of servers) if (!(await server.command('cluster', 'info')).includes('cluster_state:ok')) return false
    for (const server of servers.slice(3))
      if (!(await server.command('info', 'replication')).includes('master_link_status:up')) return false
    for (const server of servers) {
      const nodes = await server.command('cluster', 'nodes')
      if (nodes.match(/slave /g)?.length !== 3 || /fail|handshake|noaddr|disconnected/.test(nodes)) return false
    }
    return true
  }, 'the Cluster is whole')
  return {
    servers,
    async stop() {
      await Promise.all(servers.map((server) => server.stop()))
    },
  }
}
