import type { Store } from '@weir/core'
import type { StoreContractFixture } from '@weir/testing'
import { EtcdServer, NO_ETCD } from '@weir/tooling/etcd-servers'
import { afterAll, beforeAll, describe } from 'vitest'

let count = 0

/** Milliseconds for replies in tests that are not about missing ones, because the machine may be busy. */
export const PATIENT = 10_000

/** A namespace that no other test uses, so that tests share only the server. */
export function freshNamespace(): string {
  return `weir-${process.pid}-${++count}`
}

/** Defines a `describe` that is skipped, with the reason in its title, if etcd is not installed. */
export function describeEtcd(title: string, define: () => void): void {
  if (NO_ETCD === undefined) describe(title, define)
  else describe.skip(`${title} (${NO_ETCD})`, define)
}

/** A server for the tests of a `describe`. */
export function ownServer(options?: Parameters<typeof EtcdServer.start>[0]): { readonly server: EtcdServer } {
  let server: EtcdServer | undefined
  beforeAll(async () => {
    server = await EtcdServer.start(options)
  })
  afterAll(() => server?.stop())
  return {
    get server() {
      if (server === undefined) throw new Error('The server has not started.')
      return server
    },
  }
}

/** Keys that live longer than counts: the entries of processes, blocks, and the mark that blocks have changed. */
const OUTLASTS = /\/1\/(n\/[^/]+|v|b\/.*)$/

/** A fixture of the store contract that uses one server for all cases. */
export function etcdFixture(
  makeStore: (namespace: string) => Store,
  server: EtcdServer,
  more: Partial<StoreContractFixture> = {},
): StoreContractFixture {
  const namespace = freshNamespace()
  const store = makeStore(namespace)
  return {
    connect: (node) => store.open(node),
    async leftovers() {
      const keys = await server.keys(`${namespace}/`)
      return keys.filter(({ name, lease }) => lease === '0' || !OUTLASTS.test(name)).map(({ name, lease }) => `${name} ${lease}`)
    },
    close: () => {},
    ...more,
  }
}
