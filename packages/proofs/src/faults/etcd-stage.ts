import { faultProxy } from '@weir/testing'
import { EtcdServer } from '@weir/tooling/etcd-servers'
import { BOOKS } from './protocol.ts'
import type { Stage } from './servers.ts'

/** The number of seconds of a day. */
const DAY = 86_400

/** An etcd behind a proxy, which causes no faults at first. */
export async function startEtcd(): Promise<Stage> {
  const server = await EtcdServer.start()
  const proxy = await faultProxy({ port: Number(new URL(server.url).port) })
  return {
    target: `http://127.0.0.1:${proxy.port}`,
    servers: [],
    proxy,
    etcd: server,
    books: {
      async booked(namespace) {
        const counts = `${namespace}/1/c/`
        const booked = new Map<string, number>()
        for (const { name, value } of await server.keys(counts)) {
          const [policy = '', key = ''] = name.slice(counts.length).split('/')
          if (!policy.includes(BOOKS)) continue
          // After the time of the last reset and a bucket's level, a value has four numbers for each cell: its ordinal, and the
          // taken, given and rejected units.
          const numbers = JSON.parse(value) as number[]
          for (let i = 3; i < numbers.length; i += 4) {
            booked.set(key, (booked.get(key) ?? 0) + (numbers[i + 1] ?? 0) - (numbers[i + 2] ?? 0))
          }
        }
        return booked
      },
      async immortals(namespace) {
        const found: string[] = []
        const lasting = new Map<string, number>([['0', Number.POSITIVE_INFINITY]])
        for (const { name, lease } of await server.keys(`${namespace}/`)) {
          if (!lasting.has(lease)) lasting.set(lease, Number((await server.ask('/v3/lease/timetolive', { ID: lease }))['TTL'] ?? 0))
          if ((lasting.get(lease) as number) > DAY) found.push(`${name} for ${lasting.get(lease)} s`)
        }
        return found
      },
    },
    stop: async () => {
      await proxy.close()
      await server.stop()
    },
  }
}

export async function revokeAll(server: EtcdServer): Promise<void> {
  const { leases = [] } = await server.ask('/v3/lease/leases', {})
  for (const { ID } of leases as readonly { readonly ID: string }[]) await server.ask('/v3/lease/revoke', { ID })
}
