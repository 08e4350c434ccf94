import type { AddressInfo } from 'node:net'
import { Controller, type ExecutionContext, Get, Module } from '@nestjs/common'
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { WeirError } from '@weir/core'
import { createGuard } from '@weir/core/adapter'
import { describe, expect, test } from 'vitest'
import { ThrottleModule } from '../src/index.ts'
import { ThrottleLimits } from '../src/limits.ts'
import { nestReader } from '../src/reader.ts'
import 'reflect-metadata'

@Controller()
class Home {
  @Get()
  home() {
    return 'hello'
  }
}

const ONE = { key: 'ip', limit: 9, interval: '1h', coordination: 'local' } as const

function express(trust: unknown): AbstractHttpAdapter {
  const adapter = new ExpressAdapter()
  adapter.set('trust proxy', trust)
  return adapter
}
const fastify = (trustProxy: never) => new FastifyAdapter({ trustProxy }) as unknown as AbstractHttpAdapter

test.each([
  ['Express', false, 'Call app.set("trust proxy", "10.0.0.0/8")', express],
  ['Express', true, '"trust proxy" trusts every address', express],
  ['Fastify', 1, 'Use new FastifyAdapter({ trustProxy: "10.0.0.0/8" })', fastify],
  ['Fastify', true, '"trustProxy" trusts every address', fastify],
])('on %s behind a proxy with its setting %s, the warning names the next step: %s', async (_, trust, warned, make) => {
  @Module({ imports: [ThrottleModule.forRoot(ONE)], controllers: [Home] })
  class App {}
  const app = await NestFactory.create(App, make(trust as never), { logger: false, abortOnError: false })
  const warnings: WeirError[] = []
  app.get(ThrottleLimits).throttler.on('warning', ({ error }) => warnings.push(error))
  await app.listen(0, '127.0.0.1')
  const url = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}/`
  for (const address of ['192.0.2.1', '192.0.2.2']) await fetch(url, { headers: { 'X-Forwarded-For': address } })
  await app.close()
  expect(warnings.map(({ code }) => code)).toEqual(['WEIR_WARN_TRUST_PROXY'])
  expect(warnings[0]?.message).toContain(warned)
})

describe('WebSockets, which no setting of a platform is for', () => {
  const connection = { remoteAddress: '10.0.0.1', localAddress: '10.0.0.9', destroyed: false }
  const headers = { 'x-forwarded-for': '192.0.2.1' }
  const message = (client: object) =>
    ({ getType: () => 'ws', switchToWs: () => ({ getClient: () => client, getPattern: () => 'say' }) }) as unknown as ExecutionContext
  const subscription = (request: object) =>
    ({ getType: () => 'graphql', getArgs: () => [undefined, undefined, { extra: { request } }, undefined] }) as unknown as ExecutionContext

  test.each([
    ['Socket.IO', message({ handshake: { address: '10.0.0.1', headers }, request: { socket: connection } }), true],
    // A `ws` client does not keep the headers of the upgrade request.
    ['ws', message({ _socket: connection }), false],
    ['graphql-ws', subscription({ headers, socket: connection }), true],
  ])('%s are counted by the address of the connection, with a warning if a proxy shows itself', async (_, context, warned) => {
    const guard = createGuard<ExecutionContext, [ExecutionContext]>(ONE, nestReader)
    const warnings: WeirError[] = []
    guard.throttler.on('warning', ({ error }) => warnings.push(error))
    expect(await guard.check(context)).toMatchObject({ key: '10.0.0.1' })
    await guard.throttler.close()
    expect(warnings.map(({ code, message }) => [code, message.includes('key: address((context) => ...)')])).toEqual(
      warned ? [['WEIR_WARN_TRUST_PROXY', true]] : [],
    )
  })
})
