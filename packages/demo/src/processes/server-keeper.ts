import { EtcdServer } from '@weir/tooling/etcd-servers'
import { PostgresServer } from '@weir/tooling/postgres-servers'
import type { ServerKind } from '../store/choose.ts'
import { serveParent, startChild, tell } from './child.ts'

/** Keeps a private server other than Redis in its own process, like `redis-keeper.ts`, so that it ends even if the demo is killed. */
await startChild(async () => {
  const kind = JSON.parse(process.argv[2] as string) as ServerKind
  const server = await (kind === 'postgres' ? PostgresServer.start() : EtcdServer.start())
  serveParent(() => server.stop())
  tell({ type: 'demo:ready', port: Number(new URL(server.url).port), about: kind === 'postgres' ? 'PostgreSQL' : 'etcd', url: server.url })
})
