import { storeContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, etcdFixture, ownServer } from './fixtures.ts'

describeEtcd('on a real etcd', () => {
  const here = ownServer()

  storeContract(
    'etcdStore, restarted empty and killed',
    () =>
      etcdFixture((namespace) => etcdStore(here.server.url, { namespace, timeout: 2_000 }), here.server, {
        lose: () => here.server.restartEmpty(),
        async goAway() {
          await here.server.kill()
          return () => here.server.start()
        },
      }),
    { describe, test },
  )
})
