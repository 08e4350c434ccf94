import { codeThatFailsOnce } from '@weir/testing/store-tests/code-that-fails-once'
import { vi } from 'vitest'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

// Other files of the same process have loaded the code that must fail here.
vi.resetModules()
const { etcdStore } = await import('../src/index.ts')

describeEtcd('with etcd', () => {
  const here = ownServer()
  codeThatFailsOnce(() => etcdStore(here.server.url, { namespace: freshNamespace(), timeout: PATIENT }), ['leased'])
})
