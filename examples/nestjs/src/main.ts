import 'reflect-metadata'
import { Controller, Get, Module, Param } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { memoryStore, SkipThrottle, ThrottleModule } from '@weir/nestjs'
import { redisStore } from '@weir/redis'

// Each address may send three requests in ten seconds to each route. With REDIS_URL, all processes of this program share the limit.
const redis = process.env['REDIS_URL']
const store = redis ? redisStore(redis) : memoryStore()

@Controller()
class HelloController {
  @Get()
  hello(): string {
    return 'Hello from NestJS\n'
  }

  @Get('users/:name')
  user(@Param('name') name: string): string {
    return `Hello ${name}\n`
  }

  @SkipThrottle()
  @Get('health')
  health(): string {
    return 'ok\n'
  }
}

@Module({ imports: [ThrottleModule.forRoot({ key: ['ip', 'route'], limit: 3, interval: '10s', store })], controllers: [HelloController] })
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
app.enableShutdownHooks()
await app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1')
console.log(`Try: curl -i ${await app.getUrl()}/`)
