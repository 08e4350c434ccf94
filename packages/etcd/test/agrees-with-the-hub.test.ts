import { agreesWithTheHub } from '@weir/testing/store-tests/agrees-with-the-hub'
import { test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

describeEtcd('a store in etcd', () => {
  const here = ownServer()

  test('random requests bring from etcd what they bring from the hub', { timeout: 120_000 }, () =>
    agreesWithTheHub({
      open: () => etcdStore(here.server.url, { namespace: freshNamespace(), timeout: PATIENT }),
      // Each process has its own counts, and buckets are kept as cells, so older units are known less exactly.
      cells: [-1, 1],
      resets: 0,
      unsound: false,
      runs: 25,
    }),
  )
})
