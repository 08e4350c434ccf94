import { boundedConnections } from '@weir/testing/store-tests/bounded-connections'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer } from './fixtures.ts'

describeEtcd('with etcd', () => {
  const here = ownServer()
  const namespace = freshNamespace()

  boundedConnections(
    'HTTP',
    () => ({ port: Number(new URL(here.server.url).port) }),
    (port, timeout) => etcdStore(`http://127.0.0.1:${port}`, { namespace, timeout }),
  )
})
