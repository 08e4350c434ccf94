import { storeContract } from '@weir/testing'
import { shortenLua } from '@weir/tooling/lua'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { redisStore } from '../src/index.ts'
import { EXCHANGE } from '../src/scripts/exchange.ts'
import { PATIENT, redisFixture } from './fixtures.ts'

// The build publishes scripts in this form.
vi.mock('../src/scripts/exchange.ts', (original) => shortened(original))
vi.mock('../src/scripts/heartbeat.ts', (original) => shortened(original))
vi.mock('../src/scripts/exchange-with-sliding.ts', (original) => shortened(original))

async function shortened(original: () => Promise<object>): Promise<object> {
  const entries = Object.entries(await original())
  return Object.fromEntries(entries.map(([name, value]) => [name, typeof value === 'string' ? shortenLua([value])[0] : value]))
}

let server: RedisServer
beforeAll(async () => {
  server = await RedisServer.start()
})
afterAll(() => server.stop())

test('the scripts are short here', () => {
  expect(EXCHANGE).not.toContain('\n')
})

storeContract(
  'redisStore with the scripts as they are published',
  () => redisFixture((namespace) => redisStore(server.url, { ...PATIENT, namespace }), [server]),
  {
    describe,
    test,
    without: { lose: 'shown for other instances', goAway: 'shown for other instances' },
  },
)
