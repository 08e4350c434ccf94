import { request } from 'node:http'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { dashboard as forExpress } from '../src/express.ts'
import { dashboard as forFastify } from '../src/fastify.ts'
import { dashboard, password } from '../src/index.ts'
import { dashboard as forKoa } from '../src/koa.ts'
import { cookieOf, PASSWORD, post, serve, signIn, throttlerFor } from './servers.ts'

const open = { authorize: () => true, actions: true }
const closed = { authorize: password(PASSWORD), actions: true }
const PROXY = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.7' }

/** Signs in and out under `/ops/weir`, directly and like a proxy that cuts nothing off. */
async function asksForAPassword(url: string, throttler: ReturnType<typeof throttlerFor>): Promise<void> {
  const page = `${url}/ops/weir/`
  expect(await (await fetch(`${url}/ops/weir`)).text()).toContain('<title>Sign in')
  expect((await fetch(`${page}events`)).status).toBe(401)
  expect((await signIn(page, 'wrong wrong wrong')).status).toBe(401)
  expect((await fetch(page, { method: 'HEAD' })).status).toBe(401)
  const entered = await signIn(page)
  expect(entered.status).toBe(303)
  const headers = { cookie: cookieOf(entered) }
  expect(await (await fetch(page, { headers })).text()).toContain('<title>Weir</title>')
  expect((await post(`${page}block`, { key: 'b', duration: 60_000 })).status).toBe(401)
  expect((await post(`${page}block`, { key: 'b', duration: 60_000 }, headers)).status).toBe(200)
  expect(throttler.peek('b').allowed).toBe(false)
  expect((await post(`${page}sign-out`, {}, headers)).status).toBe(200)
}

/** Checks that cookies need HTTPS and that attempts are counted by address, as the framework decides. `trusted`: it trusts its proxy. */
async function knowsItsProxy(url: string, trusted: boolean): Promise<void> {
  const page = `${url}/ops/weir/`
  const cookies = (await signIn(page, PASSWORD, PROXY)).headers.getSetCookie()
  expect(cookies).toEqual([expect.stringMatching(trusted ? /; Secure$/ : /SameSite=Strict$/)])
  while ((await signIn(page, 'wrong wrong wrong', PROXY)).status !== 429);
  const others = await signIn(page, PASSWORD, { ...PROXY, 'x-forwarded-for': '203.0.113.8' })
  expect(others.status).toBe(trusted ? 303 : 429)
}

async function works(url: string, throttler: ReturnType<typeof throttlerFor>): Promise<void> {
  expect(await (await fetch(`${url}/ops/weir`)).text()).toContain('<title>Weir</title>')
  expect(await (await fetch(`${url}/ops/weir/`)).text()).toContain('<title>Weir</title>')
  const stream = await fetch(`${url}/ops/weir/events`)
  expect(stream.headers.get('content-type')).toContain('text/event-stream')
  await stream.body?.cancel()
  expect((await post(`${url}/ops/weir/block`, { key: 'a', duration: 60_000 })).status).toBe(200)
  expect(throttler.peek('a').allowed).toBe(false)
  expect((await fetch(`${url}/ops/weir`, { redirect: 'manual' })).status).toBe(302)
  const unknown = ['nonsense', 'a/', 'a/events'].map((path) => fetch(`${url}/ops/weir/${path}`, { redirect: 'manual' }))
  expect((await Promise.all(unknown)).map(({ status }) => status)).toEqual([404, 404, 404])
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

  test.each([
    ['no parser', []],
    ['a parser of JSON', [make.json()]],
    ['a parser of forms', [make.json(), make.urlencoded({ extended: true })]],
    ['a parser of anything into text', [make.text({ type: '*/*' })]],
    ['a parser of anything into bytes', [make.raw({ type: '*/*' })]],
  ])('asks for a password, with %s before it', async (_what, parsers) => {
    const throttler = throttlerFor()
    const app = make()
    for (const parser of parsers) app.use(parser)
    const page = forExpress(throttler, closed)
    onTestFinished(() => page.close())
    app.use('/ops/weir', page)
    await asksForAPassword((await serve(app)).url, throttler)
  })

  test.each([true, false])('trusts a proxy as the application does: %s', async (trusted) => {
    const app = make()
    app.set('trust proxy', trusted)
    const page = forExpress(throttlerFor(), closed)
    onTestFinished(() => page.close())
    app.use('/ops/weir', page)
    await knowsItsProxy((await serve(app)).url, trusted)
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

  test.each([true, false])('asks for a password; trusts a proxy as the application does: %s', async (trusted) => {
    const throttler = throttlerFor()
    const app = new Make({ proxy: trusted })
    const page = forKoa(throttler, { ...closed, path: '/ops/weir' })
    onTestFinished(() => page.close())
    app.use(page)
    const { url } = await serve(app.callback())
    await asksForAPassword(url, throttler)
    await knowsItsProxy(url, trusted)
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
    await Promise.all([app.close(), stream.text()])
  })

  test.each([true, false])('asks for a password; trusts a proxy as the application does: %s', async (trusted) => {
    const throttler = throttlerFor()
    const app = make({ trustProxy: trusted })
    await app.register(forFastify, { prefix: '/ops/weir', throttler, ...closed })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    onTestFinished(() => app.close())
    await asksForAPassword(url, throttler)
    await knowsItsProxy(url, trusted)
  })

  test('is not ready without authorize', async () => {
    const app = make()
    onTestFinished(() => app.close())
    await expect((async () => app.register(forFastify, { prefix: '/weir', throttler: throttlerFor() } as never))()).rejects.toThrow(
      /"authorize" is missing/,
    )
  })
})

describe('a proxy that cuts the mount path off', () => {
  test('is no hindrance: a browser finds the page, and sends its cookie there and nowhere else', async () => {
    const throttler = throttlerFor()
    const handler = dashboard(throttler, closed)
    onTestFinished(() => handler.close())
    const { port } = await serve(handler)
    const { url } = await serve((incoming, outgoing) => {
      const path = incoming.url?.replace(/^\/ops\/weir/, '') || '/'
      const passed = request({ port, path, method: incoming.method, headers: incoming.headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(outgoing)
      })
      incoming.pipe(passed)
      outgoing.on('close', () => passed.destroy())
    })
    await asksForAPassword(url, throttler)
  })
})
