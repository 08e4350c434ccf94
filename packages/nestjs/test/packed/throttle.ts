// The program that packages/acceptance runs in empty projects of every kind, from the packed tarball. It sends three requests to a
// limit of 2. It uses no server and no decorators, because applications choose their platform and how decorators are compiled.
import 'reflect-metadata'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { type ExecutionContext, HttpException, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ThrottleGuard, ThrottleModule } from '@weir/nestjs'

class AppModule {}
function hello(): void {}
Module({ imports: [ThrottleModule.forRoot({ limit: 2, interval: '1h', key: 'all' })] })(AppModule)

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false })
  const guard = app.get(ThrottleGuard)
  const outcomes: string[] = []
  for (let i = 0; i < 3; i++) {
    const request = new IncomingMessage(new Socket())
    const response = Object.assign(new ServerResponse(request), { header: () => {} })
    const http = { getRequest: () => request, getResponse: () => response }
    const context = { getType: () => 'http', getHandler: () => hello, getClass: () => AppModule, switchToHttp: () => http }
    try {
      outcomes.push((await guard.canActivate(context as unknown as ExecutionContext)) ? 'allowed' : 'gone')
    } catch (error) {
      if (!(error instanceof HttpException) || error.getStatus() !== 429) throw error
      outcomes.push('rejected')
    }
  }
  console.log(outcomes.join(' '))
  await app.close()
}

void main()
