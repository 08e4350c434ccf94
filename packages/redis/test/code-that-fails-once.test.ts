import { codeThatFailsOnce } from '@weir/testing/store-tests/code-that-fails-once'
import { vi } from 'vitest'
import { freshNamespace, PATIENT } from './fixtures.ts'
import { ownServer } from './own-server.ts'

// Other files of the same process have loaded the code that must fail here.
vi.resetModules()
const { redisStore } = await import('../src/index.ts')

const here = ownServer()
codeThatFailsOnce(() => redisStore(here.server.url, { ...PATIENT, namespace: freshNamespace() }), ['sliding', 'bucket', 'leased'])
