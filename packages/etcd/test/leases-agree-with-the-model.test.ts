import { grantsAsTheModel } from '@weir/testing/store-tests/leases'
import { test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

describeEtcd('quota taken ahead', () => {
  const here = ownServer()

  test.each(['interval', 'none'] as const)('etcd keeps each record as the model leaves it, of %s', { timeout: 90_000 }, (of) =>
    grantsAsTheModel(etcdStore(here.server.url, { namespace: freshNamespace(), timeout: PATIENT }), of, { runs: 10, within: 20_000 }),
  )
})
