import { setTimeout as sleep } from 'node:timers/promises'
import { FROM_SOURCE } from '@weir/bench/programs'
import { FrozenFunction } from '@weir/bench/runtimes/fleet'
import { type Place, storeAt } from '@weir/bench/stores/place'
import { createThrottler } from '@weir/core'
import { faultProxy } from '@weir/testing'
import { EtcdServer, NO_ETCD } from '@weir/tooling/etcd-servers'
import { findPostgres, howToInstallPostgres, PostgresServer } from '@weir/tooling/postgres-servers'
import { expect, onTestFinished, test } from 'vitest'

const LIMIT = 3
/** So long that it hardly ever ends during a test. */
const INTERVAL = 28 * 86_400_000
/** Milliseconds. A process that stands still for longer than half a second counts as frozen. */
const FREEZE = 700
/** Milliseconds in which a busy machine surely answers. */
const PATIENT = 10_000
const COORDINATIONS = ['background', 'leased', 'central'] as const

/** A store that can end all connections of the processes. */
interface Cuttable {
  readonly place: Place
  /** The same store, over connections that do not end. */
  readonly observed: Place
  cut(): Promise<void>
}

async function postgres(): Promise<Cuttable> {
  const server = await PostgresServer.start()
  onTestFinished(() => server.stop())
  const theirs = `FROM pg_stat_activity WHERE application_name = 'frozen'`
  return {
    place: { kind: 'postgres', url: `${server.url}?application_name=frozen` },
    observed: { kind: 'postgres', url: server.url },
    async cut() {
      expect(Number(await server.sql(`SELECT count(pg_terminate_backend(pid, ${PATIENT})) ${theirs}`))).toBeGreaterThan(0)
      expect(await server.sql(`SELECT count(*) ${theirs}`)).toBe('0')
    },
  }
}

async function etcd(): Promise<Cuttable> {
  const server = await EtcdServer.start()
  onTestFinished(() => server.stop())
  const proxy = await faultProxy({ port: Number(new URL(server.url).port) })
  onTestFinished(() => proxy.close())
  return {
    observed: { kind: 'etcd', endpoint: server.url },
    place: { kind: 'etcd', endpoint: `http://127.0.0.1:${proxy.port}` },
    async cut() {
      expect(proxy.connections).toBeGreaterThan(0)
      proxy.reset()
    },
  }
}

const STORES = [
  { name: 'PostgreSQL', start: postgres, without: findPostgres() === undefined && howToInstallPostgres },
  { name: 'etcd', start: etcd, without: NO_ETCD },
]
for (const { name, without } of STORES) if (without) console.warn(`${name}: ${without}`)

test.each(STORES.filter(({ without }) => !without))(
  'a process whose connections to $name ended while it was frozen decides its next request with the store, and reports no outage',
  async ({ start }) => {
    const { place, observed, cut } = await start()
    const store = await storeAt(observed, PATIENT)
    const processes = await Promise.all(
      COORDINATIONS.map(async (coordination) => {
        const one = await FrozenFunction.start({
          place,
          coordination,
          afterFreeze: 'sync',
          // A request that the store doesn't decide is rejected.
          failMode: 'closed',
          ...(coordination !== 'background' && { storeTimeout: PATIENT }),
          limit: LIMIT,
          interval: INTERVAL,
          program: { execArgv: FROM_SOURCE },
        })
        onTestFinished(() => one.end())
        const observer = createThrottler({ policies: [{ limit: LIMIT, interval: INTERVAL, coordination }], store })
        onTestFinished(() => observer.close())
        observer.start()
        const inStore = async (): Promise<unknown> =>
          (await observer.usage('all', { timeout: PATIENT })).map(({ used, source }) => (source === 'store' ? used : source))
        return { coordination, one, inStore }
      }),
    )
    const request = async ({ coordination, one, inStore }: (typeof processes)[number], used: number): Promise<void> => {
      const { allowed } = await one.request()
      const { storeDown } = await one.events()
      expect({ coordination, allowed, storeDown }).toEqual({ coordination, allowed: true, storeDown: [] })
      await expect.poll(inStore, { timeout: PATIENT, message: coordination }).toEqual([used])
      expect((await one.events()).storeDown).toEqual([])
    }
    await Promise.all(processes.map((one) => request(one, 1)))
    for (const { one } of processes) one.freeze()
    await cut()
    await sleep(FREEZE)
    await Promise.all(
      processes.map(async (one) => {
        one.one.thaw()
        await request(one, 2)
      }),
    )
  },
  120_000,
)
