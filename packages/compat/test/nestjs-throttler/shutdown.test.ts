import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Controller, Get } from '@nestjs/common'
import { memoryStore } from '@weir/core'
import { redisStore } from '@weir/redis'
import { bundlePrograms } from '@weir/tooling/bundle'
import { RedisServer } from '@weir/tooling/redis-servers'
import { expect, onTestFinished, test } from 'vitest'
import { nestThrottlerStorage } from '../../src/nestjs-throttler.ts'
import { start } from './app.ts'

const HOUR = 3_600_000

@Controller()
class Root {
  @Get()
  root() {
    return 'root'
  }
}

test('Nest closes the throttler with the application', async () => {
  const storage = nestThrottlerStorage(memoryStore())
  const app = await start(storage, [{ limit: 1, ttl: HOUR }], [Root])
  expect((await app.get('/')).status).toBe(200)
  expect(storage.throttler.state).not.toBe('closed')
  await app.close()
  expect(storage.throttler.state).toBe('closed')
})

test('a storage counts for the next application, and for one that is still open', async () => {
  const storage = nestThrottlerStorage(memoryStore())
  const limits = [{ limit: 100, ttl: HOUR }]
  const [first, second] = [await start(storage, limits, [Root]), await start(storage, limits, [Root])]
  expect((await first.get('/')).status).toBe(200)
  await first.close()
  expect((await second.get('/')).status).toBe(200)
  await second.close()
  const third = await start(storage, limits, [Root])
  expect((await third.get('/')).status).toBe(200)
  await expect.poll(async () => (await third.get('/')).headers.get('x-ratelimit-remaining')).toBe('90')
})

test('with more than 100 windows, blocks keep their length', async () => {
  const storage = nestThrottlerStorage(memoryStore())
  onTestFinished(() => storage.onApplicationShutdown())
  for (let more = 0; more < 120; more++) {
    const times = [10 * HOUR + more * 1_000, 1, 100 * HOUR, 'default'] as const
    await storage.increment(`key ${more}`, ...times)
    const { isBlocked, timeToBlockExpire } = await storage.increment(`key ${more}`, ...times)
    expect(isBlocked).toBe(true)
    expect(timeToBlockExpire).toBeGreaterThanOrEqual(360_000)
  }
})

test('a process ends after app.close(), and its last counts are at Redis', async () => {
  const redis = await RedisServer.start()
  onTestFinished(() => redis.stop())
  const directory = fileURLToPath(new URL('../..', import.meta.url))
  const folder = await bundlePrograms(directory, ['test/programs/nest-app.ts'], ['@nestjs/*', 'reflect-metadata', 'rxjs'])
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  await promisify(execFile)(process.execPath, [`${folder}/nest-app.mjs`, redis.url], { timeout: 50_000 })

  const storage = nestThrottlerStorage(redisStore(redis.url))
  onTestFinished(() => storage.onApplicationShutdown())
  await storage.increment('other', HOUR, 100, HOUR, 'default')
  expect(await storage.throttler.usage('client')).toMatchObject([{ used: 3 }])
})
