import { fileURLToPath } from 'node:url'
import { OF_STORES, promisesSettle } from '@weir/testing/store-tests/promises-settle'
import { EtcdServer } from '@weir/tooling/etcd-servers'
import { describeEtcd } from './fixtures.ts'

describeEtcd('promises that are awaited', () => {
  promisesSettle({
    directory: fileURLToPath(new URL('..', import.meta.url)),
    program: 'test/programs/awaits.ts',
    external: [],
    start: () => EtcdServer.start(),
    urlAt: (port) => `http://127.0.0.1:${port}`,
    only: OF_STORES,
  })
})
