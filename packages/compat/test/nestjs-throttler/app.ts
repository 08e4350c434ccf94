import 'reflect-metadata'
import type { AddressInfo } from 'node:net'
import { Module, type Type } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { ThrottlerGuard, ThrottlerModule, type ThrottlerModuleOptions, type ThrottlerStorage } from '@nestjs/throttler'
import { onTestFinished } from 'vitest'

/** An answer of the application. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface App {
  /** Sends a GET request, or with further parts another one. */
  get(path: string, request?: RequestInit): Promise<Answer>
  /** Headers of an answer whose names begin with `x-ratelimit` or `retry-after`, without the times. */
  limits(path: string, request?: RequestInit): Promise<Record<string, string>>
  close(): Promise<void>
}

/** Starts an application on Express whose guard is that of @nestjs/throttler. It is closed with the test. */
export async function start(storage: ThrottlerStorage, options: ThrottlerModuleOptions, controllers: Type[]): Promise<App> {
  const more = Array.isArray(options) ? { throttlers: options } : options
  @Module({
    imports: [ThrottlerModule.forRoot({ ...more, storage })],
    controllers,
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  })
  class Root {}
  const app = await NestFactory.create(Root, new ExpressAdapter(), { logger: false, abortOnError: false })
  await app.listen(0, '127.0.0.1')
  let closing: Promise<void> | undefined
  const close = () => (closing ??= app.close())
  onTestFinished(close)
  const { port } = app.getHttpServer().address() as AddressInfo
  const get = async (path: string, request: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, request)
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const limits = async (path: string, request?: RequestInit) => {
    const { status, headers } = await get(path, request)
    const own = [...headers].filter(([name]) => /^(x-ratelimit-(limit|remaining)|retry-after)/.test(name))
    return { status: `${status}`, ...Object.fromEntries(own) }
  }
  return { get, limits, close }
}
