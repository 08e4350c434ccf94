import { codeThatFailsOnce } from '@weir/testing/store-tests/code-that-fails-once'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

describeEtcd('with etcd', () => {
  const here = ownServer()
  codeThatFailsOnce(() => etcdStore(here.server.url, { namespace: freshNamespace(), timeout: PATIENT }), ['leased'])
})
