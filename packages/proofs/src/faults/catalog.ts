import type { RedisServer } from '@weir/tooling/redis-servers'
import { until } from '@weir/tooling/redis-servers'
import { revokeAll } from './etcd-stage.ts'
import type { RemoteNode } from './fleet.ts'
import { beginMove, endMove } from './moving-slot.ts'
import { TRUNCATE_ALL } from './postgres-stage.ts'
import type { Rule } from './protocol.ts'
import type { Stage } from './servers.ts'
import { type StageName, writable } from './stage.ts'

/** One fault of a store, and how to cause it. */
export interface Fault {
  readonly name: string
  readonly stage: StageName
  /** Milliseconds between its start and its end. 0 if it ends immediately. */
  readonly lasts: number
  /** Whether it is already present when the processes start. */
  readonly boot?: true
  /** Whether processes notice it, so that they use their `failMode` for a while. `undefined` if that depends on chance. */
  readonly noticed?: boolean
  readonly rule?: Partial<Rule>
  begin(stage: Stage): Promise<unknown> | unknown
  /** Ends the fault. Resolves when the store accepts writes again. */
  end(stage: Stage, nodes: readonly RemoteNode[]): Promise<unknown> | unknown
}

const first = (stage: Stage): RedisServer => stage.servers[0] as RedisServer
const primary = (stage: Stage): Promise<RedisServer> => stage.primary?.() as Promise<RedisServer>
const answers = (stage: Stage): Promise<void> => writable(first(stage).port)
const config = async (stage: Stage, name: string, value: string): Promise<string> => first(stage).command('config', 'set', name, value)
const UNRESOLVED = 'redis.weir.invalid'

/** Faults of a single server. */
const SERVER: readonly Fault[] = [
  {
    name: 'killed (−9) and restarted empty',
    stage: 'server',
    lasts: 2_000,
    noticed: true,
    begin: (stage) => first(stage).kill(),
    end: (stage) => first(stage).start(),
  },
  {
    name: 'hangs (SIGSTOP)',
    stage: 'server',
    lasts: 10_000,
    noticed: true,
    begin: (stage) => first(stage).pause(),
    end: async (stage) => {
      first(stage).resume()
      await answers(stage)
    },
  },
  { name: 'FLUSHALL', stage: 'server', lasts: 0, noticed: false, begin: (stage) => first(stage).command('flushall'), end: answers },
  {
    name: 'SCRIPT FLUSH',
    stage: 'server',
    lasts: 0,
    noticed: false,
    begin: (stage) => first(stage).command('script', 'flush'),
    end: answers,
  },
  {
    name: 'maxmemory reached, noeviction',
    stage: 'server',
    lasts: 2_000,
    noticed: true,
    begin: (stage) => config(stage, 'maxmemory', '1'),
    end: async (stage) => {
      await config(stage, 'maxmemory', '0')
      await answers(stage)
    },
  },
  {
    name: 'READONLY: the primary has become a replica',
    stage: 'server',
    lasts: 2_000,
    noticed: true,
    begin: async (stage) => {
      await config(stage, 'replica-read-only', 'yes')
      await first(stage).command('replicaof', '127.0.0.1', '1')
    },
    end: async (stage) => {
      await first(stage).command('replicaof', 'no', 'one')
      await answers(stage)
    },
  },
  {
    name: 'LOADING: reads its dump after a restart',
    stage: 'server',
    lasts: 0,
    noticed: true,
    begin: async (stage) => {
      const server = first(stage)
      // A few thousand keys that take a millisecond each to load.
      await server.command('eval', "for i = 1, 2000 do redis.call('SET', 'ballast:' .. i, i, 'PX', 60000) end", '0')
      await server.command('save')
      await server.kill()
    },
    end: async (stage) => {
      await first(stage).start(['--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024'])
      await answers(stage)
    },
  },
  {
    name: 'CLIENT KILL of all command connections',
    stage: 'server',
    lasts: 0,
    begin: (stage) => first(stage).command('client', 'kill', 'type', 'normal'),
    end: answers,
  },
  {
    name: 'CLIENT KILL of all subscribers',
    stage: 'server',
    lasts: 0,
    noticed: false,
    begin: (stage) => first(stage).command('client', 'kill', 'type', 'pubsub'),
    end: answers,
  },
  {
    name: 'absent at boot, arrives later',
    stage: 'server',
    lasts: 2_000,
    boot: true,
    noticed: true,
    begin: (stage) => first(stage).kill(),
    end: (stage) => first(stage).start(),
  },
  {
    name: 'its name does not resolve at boot, later it does',
    stage: 'server',
    lasts: 2_000,
    boot: true,
    noticed: true,
    rule: { unresolved: UNRESOLVED },
    begin: () => {},
    end: async (_stage, nodes) => await Promise.all(nodes.map((node) => node.ask({ type: 'resolve' }))),
  },
  {
    name: 'wrong password at boot, put right later',
    stage: 'secured',
    lasts: 2_000,
    boot: true,
    noticed: true,
    begin: (stage) => first(stage).command('acl', 'setuser', 'weir', 'resetpass', '>other'),
    end: (stage) => first(stage).command('acl', 'setuser', 'weir', 'resetpass', '>secret'),
  },
  {
    name: 'TLS, a user with the documented permissions; its connections are killed',
    stage: 'secured',
    lasts: 0,
    begin: (stage) => first(stage).command('client', 'kill', 'user', 'weir'),
    end: () => {},
  },
]

/** Faults of the network in front of a single server. */
const NETWORK: readonly Fault[] = [
  {
    name: 'slow: each reply takes 200 ms longer',
    stage: 'proxy',
    lasts: 5_000,
    noticed: false,
    begin: ({ proxy }) => proxy?.set({ latency: 200 }),
    end: ({ proxy }) => proxy?.heal(),
  },
  {
    name: 'connections are reset in the middle of a reply',
    stage: 'proxy',
    lasts: 2_000,
    noticed: true,
    begin: ({ proxy }) => proxy?.set({ resetAfterBytes: 5 }),
    end: ({ proxy }) => proxy?.heal(),
  },
  {
    name: 'replies are lost, although the server did its work',
    stage: 'proxy',
    lasts: 3_000,
    noticed: true,
    begin: ({ proxy }) => proxy?.set({ loseReplies: true }),
    end: ({ proxy }) => proxy?.heal(),
  },
  {
    name: 'half-open connections: silence in both directions',
    stage: 'proxy',
    lasts: 5_000,
    noticed: true,
    begin: ({ proxy }) => proxy?.set({ halfOpen: true }),
    end: ({ proxy }) => proxy?.heal(),
  },
  {
    name: 'every request arrives again, half a second later, on another connection',
    stage: 'proxy',
    lasts: 4_000,
    begin: ({ proxy }) => {
      proxy?.set({ duplicate: 500 })
      // Only new connections are duplicated.
      proxy?.reset()
    },
    end: ({ proxy }) => proxy?.heal(),
  },
]

/** Waits until a Cluster has its primaries and replicas again. */
const whole = async (servers: readonly RedisServer[]): Promise<void> => {
  for (const server of servers) {
    await until(async () => (await server.command('cluster', 'info')).includes('cluster_state:ok'), 'the Cluster is whole', 60_000)
  }
}
const failedOver = (observer: RedisServer, lost: RedisServer): Promise<void> =>
  until(async () => (await promoted(observer, lost.port)) > 0, 'its replica has taken over', 60_000)

/** Faults of several servers. Faults that cost servers come last. */
const TOPOLOGIES: readonly Fault[] = [
  {
    name: 'Sentinel failover: the primary hangs',
    stage: 'sentinels',
    lasts: 0,
    noticed: true,
    begin: async (stage) => {
      const old = await primary(stage)
      old.pause()
      await until(async () => (await primary(stage)) !== old, 'Sentinels have chosen another primary', 60_000)
      await old.kill()
    },
    end: async (stage) => {
      await writable((await primary(stage)).port)
    },
  },
  {
    name: 'Sentinel failover: the primary is killed',
    stage: 'sentinels',
    lasts: 0,
    noticed: true,
    begin: async (stage) => {
      const old = await primary(stage)
      await old.kill()
      await until(async () => (await primary(stage)) !== old, 'Sentinels have chosen another primary', 60_000)
    },
    end: async (stage) => {
      await writable((await primary(stage)).port)
    },
  },
  {
    name: 'Cluster: a slot in use moves to another primary (ASK, MOVED)',
    stage: 'cluster',
    lasts: 2_000,
    begin: (stage) => beginMove(stage),
    end: (stage) => endMove(stage),
  },
  {
    name: 'Cluster: a primary without quorum, as all others hang',
    stage: 'cluster',
    lasts: 6_000,
    noticed: true,
    begin: ({ servers }) => {
      for (const server of servers.slice(1)) server.pause()
    },
    end: async ({ servers }) => {
      for (const server of servers.slice(1)) server.resume()
      await whole(servers)
    },
  },
  {
    name: 'Cluster failover: a primary hangs',
    stage: 'cluster',
    lasts: 0,
    begin: async ({ servers }) => {
      const hung = await primaryAmong(servers)
      hung.pause()
      await failedOver(servers.find((server) => server !== hung) as RedisServer, hung)
      await hung.kill()
    },
    end: ({ servers }) => whole(servers.filter((server) => server.running)),
  },
  {
    name: 'Cluster failover: a primary is killed',
    stage: 'cluster',
    lasts: 0,
    begin: async ({ servers }) => {
      const killed = await primaryAmong(servers)
      await killed.kill()
      await failedOver(servers.find((server) => server.running) as RedisServer, killed)
    },
    end: ({ servers }) => whole(servers.filter((server) => server.running)),
  },
  {
    name: 'Cluster with TLS, a user with the documented permissions; its connections are killed',
    stage: 'secured-cluster',
    lasts: 0,
    begin: ({ servers }) => Promise.all(servers.map((server) => server.command('client', 'kill', 'user', 'weir'))),
    end: () => {},
  },
]

/** Finds a primary that has a replica left. */
async function primaryAmong(servers: readonly RedisServer[]): Promise<RedisServer> {
  for (const server of servers) {
    if (server.running && /^role:master\r?\nconnected_slaves:[1-9]/m.test(await server.command('info', 'replication'))) return server
  }
  throw new Error('No primary has a replica left.')
}

/** Whether the failed primary with this port has lost its slots to another one: 1 or 0. */
async function promoted(observer: RedisServer, port: number): Promise<number> {
  const lines = (await observer.command('cluster', 'nodes')).split('\n')
  const old = lines.find((line) => line.includes(`:${port}@`)) ?? ''
  // A replaced primary is listed without slots.
  return /master,fail/.test(old) && old.trim().split(' ').length === 8 ? 1 : 0
}

const NAMES = { postgres: 'PostgreSQL', etcd: 'etcd' } as const
type Other = keyof typeof NAMES

/** Faults that every store can have. */
const common = (stage: Other): readonly Fault[] => [
  {
    name: `${NAMES[stage]} hangs (SIGSTOP)`,
    stage,
    lasts: 5_000,
    noticed: true,
    begin: (at) => at[stage]?.pause(),
    end: (at) => at[stage]?.resume(),
  },
  {
    name: `${NAMES[stage]}: replies are lost, although the server did its work`,
    stage,
    lasts: 3_000,
    noticed: true,
    begin: ({ proxy }) => proxy?.set({ loseReplies: true }),
    end: ({ proxy }) => proxy?.heal(),
  },
  {
    name: `${NAMES[stage]}: every request arrives again, half a second later, on another connection`,
    stage,
    lasts: 4_000,
    begin: ({ proxy }) => {
      proxy?.set({ duplicate: 500 })
      proxy?.reset()
    },
    end: ({ proxy }) => proxy?.heal(),
  },
]

const END_CONNECTIONS = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'weir'`

const POSTGRES: readonly Fault[] = [
  {
    name: 'PostgreSQL killed (−9) and restarted, its UNLOGGED tables empty',
    stage: 'postgres',
    lasts: 2_000,
    noticed: true,
    begin: ({ postgres }) => postgres?.kill(),
    end: ({ postgres }) => postgres?.start(),
  },
  {
    name: 'PostgreSQL: TRUNCATE of all tables',
    stage: 'postgres',
    lasts: 0,
    noticed: false,
    begin: ({ postgres }) => postgres?.sql(TRUNCATE_ALL),
    end: () => {},
  },
  {
    name: 'PostgreSQL: all connections are ended by an administrator',
    stage: 'postgres',
    lasts: 0,
    begin: ({ postgres }) => postgres?.sql(END_CONNECTIONS),
    end: () => {},
  },
  {
    name: 'PostgreSQL has become read-only',
    stage: 'postgres',
    lasts: 2_000,
    noticed: true,
    begin: ({ postgres }) => readOnly(postgres, 'on'),
    end: ({ postgres }) => readOnly(postgres, 'off'),
  },
  ...common('postgres'),
]

/** Makes new sessions read-only, and ends the others. Sessions of another database are not affected. */
async function readOnly(server: Stage['postgres'], value: 'on' | 'off'): Promise<void> {
  await server?.sql(`ALTER DATABASE postgres SET default_transaction_read_only = ${value}`, 'template1')
  await server?.sql(END_CONNECTIONS)
}

const ETCD: readonly Fault[] = [
  {
    name: 'etcd killed (−9) and restarted with its data',
    stage: 'etcd',
    lasts: 2_000,
    noticed: true,
    begin: ({ etcd }) => etcd?.kill(),
    end: ({ etcd }) => etcd?.start(),
  },
  {
    name: 'etcd killed (−9) and restarted empty',
    stage: 'etcd',
    lasts: 2_000,
    noticed: true,
    begin: ({ etcd }) => etcd?.kill(),
    end: ({ etcd }) => etcd?.restartEmpty(),
  },
  {
    name: 'etcd: all leases are revoked manually',
    stage: 'etcd',
    lasts: 0,
    noticed: false,
    begin: ({ etcd }) => etcd && revokeAll(etcd),
    end: () => {},
  },
  ...common('etcd'),
]

export const FAULTS: readonly Fault[] = [...SERVER, ...NETWORK, ...TOPOLOGIES, ...POSTGRES, ...ETCD]
