import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { dashboard as forExpress } from '../src/express.ts'
import { dashboard as forFastify } from '../src/fastify.ts'
import { dashboard as forKoa } from '../src/koa.ts'
import { post, serve, throttlerFor } from './servers.ts'

const open = { authorize: () => true, actions: true }

async function works(url: string, throttler: ReturnType<typeof throttlerFor>): Promise<void> {
  expect(await (await fetch(`${url}/ops/weir`)).text()).toContain('<title>Weir</title>')
  expect(await (await fetch(`${url}/ops/weir/`)).text()).toContain('<title>Weir</title>')
  const stream = await fetch(`${url}/ops/weir/events`)
  expect(stream.headers.get('content-type')).toContain('text/event-stream')
  await stream.body?.cancel()
  expect((await post(`${url}/ops/weir/block`, { key: 'a', duration: 60_000 })).status).toBe(200)
  expect(throttler.peek('a').allowed).toBe(false)
  expect(await (await fetch(`${url}/other`)).text()).toBe('other')
}

describe.each([
  ['Express 5', express],
  ['Express 4', (await import('express4' as string)).default as typeof express],
])('%s', (_name, make) => {
  test.each([true, false])('serves the page under a mount path; bodies parsed before: %s', async (parsed) => {
    const throttler = throttlerFor()
    const app = make()
    if (parsed) app.use(make.json())
    const page = forExpress(throttler, open)
    onTestFinished(() => page.close())
    const ops = make.Router()
    ops.use('/weir', page)
    app.use('/ops', ops)
    app.get('/other', (_request, response) => {
      response.send('other')
    })
    await works((await serve(app)).url, throttler)
  })
})

describe.each([
  ['Koa 3', Koa],
  ['Koa 2', (await import('koa2' as string)).default as typeof Koa],
])('%s', (_name, Make) => {
  test('serves the page at its path', async () => {
    const throttler = throttlerFor()
    const app = new Make()
    const page = forKoa(throttler, { ...open, path: '/ops/weir' })
    onTestFinished(() => page.close())
    app.use(page)
    app.use((ctx) => {
      ctx.body = 'other'
    })
    await works((await serve(app.callback())).url, throttler)
  })
})

test('Koa must be told the path', () => {
  expect(() => forKoa(throttlerFor(), {} as never)).toThrow(/"path" is missing/)
})

describe.each([
  ['Fastify 5', fastify],
  ['Fastify 4', (await import('fastify4' as string)).default as typeof fastify],
])('%s', (_name, make) => {
  test('serves the page under its prefix, and closes while a page is open', async () => {
    const throttler = throttlerFor()
    const app = make()
    await app.register(forFastify, { prefix: '/ops/weir', throttler, ...open })
    app.get('/other', () => 'other')
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    await works(url, throttler)
    const stream = await fetch(`${url}/ops/weir/events`)
    const began = Date.now()
    await Promise.all([app.close(), stream.text()])
    expect(Date.now() - began).toBeLessThan(3_000)
  })
})
