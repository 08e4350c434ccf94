import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { createThrottler, type PolicyOptions, type Store, type Throttler } from '@weir/core'
import { header } from '@weir/core/http'
import { snapshot } from '@weir/core/inspect'
import { ipcStore } from '@weir/core/ipc'
import { serveParent, startChild, tell } from './child.ts'
import { CLIENT_HEADER, CLIENT_POLICY, type GatewayConfig, GLOBAL_POLICY } from './messages.ts'
import { timing } from './timing.ts'

/** Each process loads only its own framework, because loading is most of the start on a small machine. */
const GATEWAYS = {
  express: async () => (await import('../gateways/express.ts')).expressGateway,
  fastify: async () => (await import('../gateways/fastify.ts')).fastifyGateway,
  koa: async () => (await import('../gateways/koa.ts')).koaGateway,
}
const TITLES = { express: 'Express', fastify: 'Fastify', koa: 'Koa' }
/** Milliseconds between reports to the parent. */
const REPORT_INTERVAL = 200

await startChild(async () => {
  const config = JSON.parse(process.argv[2] as string) as GatewayConfig
  const throttler = createThrottler({ policies: policiesOf(config), store: await storeOf(config) })
  for (const state of ['storeDown', 'storeUp'] as const) throttler.on(state, () => tell({ type: 'demo:state', state, time: Date.now() }))
  throttler.start()
  const makeGateway = await GATEWAYS[config.framework]()
  const server = await makeGateway(throttler, config.backendPort)
  const report = (): void => tell({ type: 'demo:report', snapshot: snapshot(throttler), timing: timing(), time: Date.now() })
  const reports = setInterval(report, REPORT_INTERVAL)
  const page = config.page ? await servePage(throttler) : undefined
  serveParent(async () => {
    clearInterval(reports)
    page?.close()
    server.closeAllConnections()
    report()
    await throttler.close()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { version } = createRequire(import.meta.url)(`${config.framework}/package.json`) as { version: string }
  tell({
    type: 'demo:ready',
    port: (server.address() as AddressInfo).port,
    about: `${TITLES[config.framework]} ${version}`,
    ...(page && { page: page.url }),
  })
})

/** Serves the dashboard on a loopback address. */
async function servePage(throttler: Throttler): Promise<{ url: string; close(): void }> {
  const { dashboard } = await import('@weir/dashboard')
  const handler = dashboard(throttler, { authorize: 'none', actions: true })
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => {
      handler.close()
      server.close()
      server.closeAllConnections()
    },
  }
}

function policiesOf({ limit, globalLimit, interval, spans, cooldown, coordination }: GatewayConfig): PolicyOptions[] {
  // With `central` there are no spans. The store gets a long timeout, so that a busy machine causes slow requests and not decisions
  // without the store.
  const shared = coordination === 'central' ? { interval, coordination, storeTimeout: 1_000 } : { interval, spans }
  const perClient: PolicyOptions = { name: CLIENT_POLICY, key: header(CLIENT_HEADER), limit, cooldown, ...shared }
  if (globalLimit === undefined) return [perClient]
  return [perClient, { name: GLOBAL_POLICY, key: 'all', limit: globalLimit, ...shared }]
}

async function storeOf({ store }: GatewayConfig): Promise<Store> {
  if (store === undefined) return ipcStore()
  const { kind, url, namespace } = store
  switch (kind) {
    case 'redis':
      return (await import('@weir/redis')).redisStore(url, { namespace })
    case 'postgres':
      return (await import('@weir/postgres')).postgresStore(url, { schema: namespace.replaceAll('-', '_') })
    case 'etcd':
      return (await import('@weir/etcd')).etcdStore(url, { namespace })
  }
}
