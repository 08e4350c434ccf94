import { type ArgumentsHost, Catch, Controller, type ExceptionFilter, Get, Module } from '@nestjs/common'
import { APP_FILTER, NestFactory } from '@nestjs/core'
import { manualClock } from '@weir/testing'
import { describe, expect, test } from 'vitest'
import { ThrottledException, ThrottleModule, type ThrottleOptions } from '../src/index.ts'
import { PLATFORMS } from './platforms.ts'

const ONE = { limit: 1, interval: '1h', key: 'all', clock: manualClock() } as const

@Controller()
class Pages {
  @Get()
  page() {
    return 'hello'
  }
}

describe.each(PLATFORMS)('on $name', ({ adapter }) => {
  /** The response to a rejected request. */
  async function rejected(
    options: object,
    filter?: new () => ExceptionFilter,
  ): Promise<{ status: number; type: string; body: string; after: string | null }> {
    @Module({
      imports: [ThrottleModule.forRoot({ ...ONE, ...options } as ThrottleOptions)],
      controllers: [Pages],
      providers: filter === undefined ? [] : [{ provide: APP_FILTER, useClass: filter }],
    })
    class App {}
    const app = await NestFactory.create(App, adapter(), { logger: false })
    await app.listen(0, '127.0.0.1')
    const url = `http://127.0.0.1:${app.getHttpServer().address().port}/`
    await fetch(url)
    const response = await fetch(url)
    const body = await response.text()
    await app.close()
    const { status, headers } = response
    return { status, type: String(headers.get('content-type')).split(';')[0] as string, body, after: headers.get('retry-after') }
  }

  test('with throwOnReject throw a filter of the application gets it, with status and decision', async () => {
    @Catch()
    class All implements ExceptionFilter {
      catch(exception: unknown, host: ArgumentsHost) {
        if (!(exception instanceof ThrottledException)) throw exception
        const { decision } = exception
        const response = host.switchToHttp().getResponse()
        response.status(exception.getStatus()).send({ mine: exception.getResponse(), policy: decision.policy?.name })
      }
    }
    const { status, body, after } = await rejected({ throwOnReject: true }, All)
    expect([status, after]).toEqual([429, expect.stringMatching(/^3(600|59\d)$/)])
    expect(JSON.parse(body)).toMatchObject({ policy: 'default', mine: { statusCode: 429 } })
  })

  test('throwOnReject: true without a filter is answered as any exception', async () => {
    const { status, type, body, after } = await rejected({ throwOnReject: true })
    expect([status, type, after]).toEqual([429, 'application/json', expect.stringMatching(/^3(600|59\d)$/)])
    expect(JSON.parse(body)).toEqual({ statusCode: 429, message: `Too many requests. Try again in ${after} s.` })
  })

  test('a handler that answers nothing is followed by the standard answer', async () => {
    const { status, type } = await rejected({ handler: () => {}, callbackTimeout: 10, clock: undefined })
    expect([status, type]).toEqual([429, 'application/problem+json'])
  })
})
