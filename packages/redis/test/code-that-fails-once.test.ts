import { codeThatFailsOnce } from '@weir/testing/store-tests/code-that-fails-once'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()
codeThatFailsOnce(() => redisStore(here.server.url, { ...PATIENT, namespace: freshNamespace() }), ['sliding', 'bucket', 'leased'])
