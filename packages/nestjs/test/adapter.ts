import type { Server, ServerResponse } from 'node:http'
import {
  All,
  applyDecorators,
  Controller,
  createParamDecorator,
  type ExecutionContext,
  Get,
  HttpCode,
  HttpException,
  type INestApplication,
  Module,
  Param,
  Post,
  Req,
  Res,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { Decision, Throttler } from '@weir/core'
import type { HandlerDecision } from '@weir/core/adapter'
import { type AdapterUnderTest, peekThrice } from '@weir/testing'
import {
  type HandlerThrottleOptions,
  Throttle,
  ThrottleDecision,
  ThrottleGuard,
  ThrottleModule,
  type ThrottleOptions,
} from '../src/index.ts'
import { ThrottleLimits } from '../src/limits.ts'
import { type ResponseLike, rawOf } from '../src/transport.ts'
import type { Platform } from './platforms.ts'

/** The contract's application, on a platform of NestJS. */
export function nestAdapter({ adapter, http2: overHttp2 }: Platform): AdapterUnderTest<ExecutionContext> {
  return {
    routes: 'pattern',
    handlerEnd: true,
    http2: overHttp2,
    proxies: true,
    ownLimits: true,
    async start(inputs, { work, http2, proxy, own }) {
      const controllers = [controllerOf(() => app, work, own)]
      @Module({ imports: inputs.map((input) => ThrottleModule.forRoot(input as ThrottleOptions)), controllers })
      class AppModule {}
      const app: INestApplication = await NestFactory.create(AppModule, adapter({ proxy, http2 }), { logger: false, abortOnError: false })
      await app.listen(0, '127.0.0.1')
      const server = app.getHttpServer() as Server
      return {
        server,
        throttlers: throttlersOf(app),
        close: async () => {
          server.closeAllConnections?.()
          await app.close()
        },
      }
    },
    header: (context, name) => {
      const value = context.switchToHttp().getRequest().headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
    answering: (text) => (context: ExecutionContext) => {
      const response = context.switchToHttp().getResponse()
      response.send(text)
    },
    begun: ([context], text, last = false) => {
      const response = context as ExecutionContext
      const raw = rawOf(response.switchToHttp().getResponse())
      if (last) raw.end(text)
      else raw.write(text)
    },
    status: ([context]) => (context as ExecutionContext).switchToHttp().getResponse().statusCode,
  }
}

function throttlersOf(app: INestApplication): Throttler<string, ExecutionContext>[] {
  return app
    .get(ThrottleLimits, { each: true, strict: false } as never as { strict: boolean; each: true })
    .map(({ throttler }) => throttler)
}

function controllerOf(app: () => INestApplication, work: () => Promise<void>, own: object | undefined) {
  const Peeked = createParamDecorator((_data: unknown, context: ExecutionContext) =>
    peekThrice(() => app().get(ThrottleGuard, { strict: false }).peek(context)),
  )
  const charge = (decision: Decision | undefined, response: ServerResponse, units: () => number) =>
    response.on('finish', () => {
      if (decision !== undefined) throttlersOf(app())[0]?.charge(decision, units())
    })

  @Controller()
  class Routes {
    @(own === undefined ? All() : applyDecorators(All(), Throttle(own as HandlerThrottleOptions)))
    hello() {
      return 'hello'
    }
    @Get('context')
    context(@ThrottleDecision() decision: Decision | undefined, @Res({ passthrough: true }) response: ResponseLike) {
      response.header('content-type', 'application/json')
      return JSON.stringify(
        decision === undefined ? null : { allowed: decision.allowed, remaining: decision.remaining, policy: decision.policy?.name },
      )
    }
    @Get('users/:id')
    user() {
      return 'user'
    }
    @Get('stream')
    stream(@Res() response: ResponseLike, @ThrottleDecision() decision: HandlerDecision | undefined) {
      const raw = hijacked(response)
      for (const piece of ['one', 'two', 'three']) raw.write(piece)
      decision?.used?.({ tokens: 11 })
      raw.end()
    }
    @Get('slow')
    slow(@Res() response: ResponseLike, @ThrottleDecision() decision: HandlerDecision | undefined) {
      hijacked(response).write('wait')
      decision?.used?.({ tokens: 4 })
    }
    @Get('status/:code')
    status(@Param('code') code: string, @Res({ passthrough: true }) response: { status(code: number): unknown }) {
      response.status(Number(code))
      return 'done'
    }
    @Post('status/:code')
    @HttpCode(200)
    posted(@Param('code') code: string, @Res({ passthrough: true }) response: { status(code: number): unknown }) {
      response.status(Number(code))
      return 'done'
    }
    @Get('bytes/:count')
    bytes(
      @Param('count') count: string,
      @ThrottleDecision() decision: Decision | undefined,
      @Res({ passthrough: true }) response: ResponseLike,
    ) {
      charge(decision, rawOf(response), () => Number(count))
      return 'x'.repeat(Number(count))
    }
    @Get('busy/:milliseconds')
    async busy(
      @Param('milliseconds') milliseconds: string,
      @ThrottleDecision() decision: Decision | undefined,
      @Res({ passthrough: true }) response: ResponseLike,
      @Req() _request: unknown,
    ) {
      const began = performance.now()
      charge(decision, rawOf(response), () => performance.now() - began)
      await new Promise((resolve) => setTimeout(resolve, Number(milliseconds)))
      return 'done'
    }
    @Get('work')
    async work() {
      await work()
      return 'done'
    }
    @Get('peek')
    async peek(@Peeked() peeked: Promise<object | null>) {
      return JSON.stringify(await peeked)
    }
    @Get('throw')
    teapot() {
      throw new HttpException('teapot', 418)
    }
  }
  return Routes
}

/** Takes the response of Node.js from the framework, and copies the header fields that were set. */
function hijacked(response: ResponseLike): ServerResponse {
  const raw = rawOf(response)
  if (response.raw === undefined) return raw
  const reply = response as unknown as { hijack(): void; getHeaders(): Record<string, string> }
  for (const [name, value] of Object.entries(reply.getHeaders())) raw.setHeader(name, value)
  reply.hijack()
  return raw
}
