import 'reflect-metadata'
import { Controller, Get, Module, Param } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { memoryStore } from '@weir/core'
import { ThrottleGuard } from './throttle-guard.ts'

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
}

@Module({ controllers: [HelloController] })
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
app.useGlobalGuards(new ThrottleGuard({ key: ['ip', 'route'], limit: 3, interval: '10s', store: memoryStore() }))
await app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1')
console.log(`Try: curl -i ${await app.getUrl()}/`)
