import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Controller, Get, type INestApplication, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import type { Decision } from '@weir/core'
import { manualClock, restoreTarget, type SpelledRoute, spelledAnswer, spellingPolicies, trySpellings } from '@weir/testing'
import express from 'express'
import { expect, test } from 'vitest'
import { ThrottleDecision, ThrottleModule } from '../src/index.ts'
import { samplesOf } from '../src/route-samples.ts'
import 'reflect-metadata'

/** Paths and the patterns that their policies match. */
const ROUTES: readonly SpelledRoute[] = [
  { match: '/', path: '/' },
  { match: '/login', path: '/login' },
  { match: '/x/:id', path: '/x/jane' },
  { match: '/y/:id/z', path: '/y/17/z' },
  { match: '/opt{/:x}', path: '/opt/1' },
  { match: '/files/*rest', path: '/files/a/b' },
]

test('a request that reaches a handler is counted by the policy of its route, however its target is spelled', async () => {
  @Controller()
  class Pages {
    @Get('/')
    root(@ThrottleDecision() decision: Decision) {
      return spelledAnswer('/', decision)
    }
    @Get('/login')
    login(@ThrottleDecision() decision: Decision) {
      return spelledAnswer('/login', decision)
    }
    @Get('/x/:id')
    one(@ThrottleDecision() decision: Decision) {
      return spelledAnswer('/x/:id', decision)
    }
    @Get('/y/:id/z')
    inner(@ThrottleDecision() decision: Decision) {
      return spelledAnswer('/y/:id/z', decision)
    }
    @Get('/opt{/:x}')
    optional(@ThrottleDecision() decision: Decision) {
      return spelledAnswer('/opt{/:x}', decision)
    }
    @Get('/files/*rest')
    files(@ThrottleDecision() decision: Decision) {
      return spelledAnswer('/files/*rest', decision)
    }
  }
  @Module({ imports: [ThrottleModule.forRoot({ policies: spellingPolicies(ROUTES), clock: manualClock() })], controllers: [Pages] })
  class App {}
  const handler = express()
  const app: INestApplication = await NestFactory.create(App, new ExpressAdapter(handler), { logger: false, abortOnError: false })
  await app.init()
  const server = createServer((req: IncomingMessage, res: ServerResponse) => {
    restoreTarget(req)
    handler(req, res)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const { oddly } = await trySpellings({ port: (server.address() as AddressInfo).port, routes: ROUTES, count: 2000 })
    expect(oddly).toBeGreaterThan(50)
  } finally {
    server.closeAllConnections()
    server.close()
    await app.close()
  }
}, 30_000)

test.each([
  ['/users/:id', ['/users/%01']],
  ['users', ['/users']],
  ['/opt{/:x}', ['/opt/%01', '/opt']],
  ['/a{/:b{/:c}}', ['/a/%01/%01', '/a/%01', '/a', '/a']],
  ['/files/*rest', ['/files/%01/%01']],
  ['/files/*', ['/files/%01/%01']],
  ['/n/:id(^\\d+$)', ['/n/%01']],
  ['/é', ['/\u00c3\u00a9']],
])('the samples of %s stand for all paths that reach it', (pattern, samples) => {
  expect(new Set(samplesOf(pattern))).toEqual(new Set(samples))
})
