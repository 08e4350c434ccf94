// An application that answers three requests, closes, and ends by itself. Its argument is the address of Redis.
import 'reflect-metadata'
import type { AddressInfo } from 'node:net'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import { redisStore } from '@weir/redis'
import { nestThrottlerStorage } from '../../src/nestjs-throttler.ts'

@Controller()
class Root {
  @Get()
  root() {
    return 'root'
  }
}

const [, , url = ''] = process.argv
const throttlers = [{ ttl: 3_600_000, limit: 100, getTracker: () => 'client', generateKey: () => 'client' }]
@Module({
  imports: [ThrottlerModule.forRoot({ throttlers, storage: nestThrottlerStorage(redisStore(url)) })],
  controllers: [Root],
  providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
})
class App {}

const app = await NestFactory.create(App, new ExpressAdapter(), { logger: false })
await app.listen(0, '127.0.0.1')
const { port } = app.getHttpServer().address() as AddressInfo
for (let request = 0; request < 3; request++) {
  const response = await fetch(`http://127.0.0.1:${port}/`)
  await response.text()
}
await app.close()
