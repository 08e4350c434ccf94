import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Packed } from '@weir/tooling/pack'
import { RedisServer } from '@weir/tooling/redis-servers'
import { mustRun, pnpm } from '@weir/tooling/run'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'

const scratch = mkdtempSync(join(tmpdir(), 'weir-enough-'))
const env = { ...process.env, NODE_ENV: 'development', CI: 'true', YARN_ENABLE_TELEMETRY: '0', YARN_ENABLE_IMMUTABLE_INSTALLS: 'false' }
const packed = inject('packed')
let redis: RedisServer
/** The path of yarn. */
let yarn: Promise<string> | undefined

beforeAll(async () => {
  redis = await RedisServer.start()
})
afterAll(async () => {
  await redis?.stop()
  rmSync(scratch, { recursive: true, force: true })
})

/** The export that mounts the adapter, if it isn't `throttle`. */
const MOUNTED: Readonly<Record<string, string>> = { fastify: 'weir', nestjs: 'ThrottleModule' }

/** Applications by the name of their adapter. Each program sets `server`. */
const ADAPTERS: Readonly<Record<string, string>> = {
  express: `import express from 'express'
import { createServer } from 'node:http'
const app = express()
app.use(throttle(throttler))
app.get('/', (_req, res) => res.send('hello'))
const server = createServer(app)`,
  fastify: `import Fastify from 'fastify'
const app = Fastify()
await app.register(weir, { throttler })
app.get('/', () => 'hello')
await app.ready()
const { server } = app`,
  koa: `import Koa from 'koa'
import { createServer } from 'node:http'
const app = new Koa()
app.use(throttle(throttler))
app.use((ctx) => { ctx.body = 'hello' })
const server = createServer(app.callback())`,
  hono: `import { Hono } from 'hono'
import { getRequestListener } from '@hono/node-server'
import { createServer } from 'node:http'
const app = new Hono()
app.use(throttle(throttler))
app.get('/', (c) => c.text('hello'))
const server = createServer(getRequestListener(app.fetch))`,
  web: `import { getRequestListener } from '@hono/node-server'
import { createServer } from 'node:http'
const server = createServer(getRequestListener(throttle(throttler)(() => new Response('hello'))))`,
  // Calls decorators as functions, because only a compiler can apply them.
  nestjs: `import { Module, Controller, Get } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
await import('reflect-metadata')
class Pages { hello() { return 'hello' } }
Controller()(Pages)
Get()(Pages.prototype, 'hello', Object.getOwnPropertyDescriptor(Pages.prototype, 'hello'))
class App {}
Module({ imports: [ThrottleModule.forRoot({ throttler })], controllers: [Pages] })(App)
const app = await NestFactory.create(App, { logger: false })
await app.init()
const server = app.getHttpServer()`,
}

/** Packages that an application installs in addition to the peers of the adapter. */
const BROUGHT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  nestjs: { '@nestjs/platform-express': '^12.1.0' },
  web: { '@hono/node-server': '^2.1.0', hono: '^4.13.0' },
  'nestjs 11': Object.fromEntries(['common', 'core', 'platform-express', 'websockets'].map((name) => [`@nestjs/${name}`, '^11.1.0'])),
}

/** A program that imports only the adapter, the store and its framework. */
const program = (adapter: string, framework: string, namespace: string) => `
import { createThrottler, fixedWindow, memoryStore, ${MOUNTED[adapter] ?? 'throttle'} } from '@weir/${adapter}'
import { redisStore } from '@weir/redis'
const policies = [{ limit: 2, interval: '1h', key: 'all', algorithm: fixedWindow() }]
for (const store of [memoryStore(), redisStore(process.env.REDIS_URL, { namespace: '${namespace}' })]) {
  const throttler = createThrottler({ store, policies })
  const statuses = await ask(throttler)
  await throttler.close()
  console.log(statuses.join(' '))
}
async function ask(throttler) {
  ${framework.replaceAll(/^import (.+) from (.+)$/gm, (_, what: string, from: string) => `const ${/^\{/.test(what) ? what : `{ default: ${what} }`} = await import(${from})`).replaceAll('\n', '\n  ')}
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await fetch('http://127.0.0.1:' + server.address().port)).status)
  server.closeAllConnections()
  server.close()
  return statuses
}
`

const find = (name: string): Packed => packed.find(({ manifest }) => manifest.name === name) as Packed

const CASES: [string, string][] = [
  ...Object.keys(ADAPTERS).map((adapter): [string, string] => ['pnpm', adapter]),
  ['npm', 'express'],
  ['yarn', 'express'],
  ['yarn', 'fastify'],
  ['pnpm', 'nestjs 11'],
] as const

// With pnpm and yarn, a package can import only its own dependencies.
describe('an adapter and a store are enough', () => {
  it.each(CASES)('with %s and @weir/%s', async (installer, version) => {
    const [adapter] = version.split(' ') as [string]
    const framework = ADAPTERS[adapter] as string
    const directory = join(scratch, `${installer}-${version}`)
    mkdirSync(directory)
    const used = [find(`@weir/${adapter}`), find('@weir/redis')]
    const dependencies: Record<string, string> = {}
    for (const { manifest, tarball } of used) {
      // One client for Redis is enough, and this one is ioredis.
      const { redis: _, ...peers } = manifest.peerDependencies ?? {}
      Object.assign(dependencies, { [manifest.name]: `file:${tarball}`, ...peers })
    }
    Object.assign(dependencies, BROUGHT[version])
    // The packages depend on each other by version, but these versions are not published.
    const unpublished = Object.fromEntries(['@weir/core', '@weir/web'].map((name) => [name, `file:${find(name).tarball}`]))
    const instead = installer === 'yarn' ? { resolutions: unpublished } : { overrides: unpublished }
    writeFileSync(
      join(directory, 'package.json'),
      JSON.stringify({ name: 'application', private: true, type: 'module', dependencies, ...(installer === 'pnpm' ? {} : instead) }),
    )
    writeFileSync(join(directory, 'main.js'), program(adapter, framework, `${installer}-${version.replace(' ', '-')}`))
    const at = { cwd: directory, env: { ...env, REDIS_URL: redis.url } }
    let said: string
    if (installer === 'npm') {
      await mustRun('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock'], at)
      said = await mustRun(process.execPath, ['main.js'], at)
    } else if (installer === 'pnpm') {
      writeFileSync(join(directory, 'pnpm-workspace.yaml'), `packages: []\noverrides: ${JSON.stringify(unpublished)}\n`)
      await pnpm(['install', '--prefer-offline', '--no-frozen-lockfile'], at)
      said = await mustRun(process.execPath, ['main.js'], at)
    } else {
      // A lockfile makes this folder a project of its own. Otherwise yarn would use the root of this repository.
      writeFileSync(join(directory, 'yarn.lock'), '')
      // Looked up once, because npx needs seconds to find yarn.
      yarn ??= mustRun('npx', ['-y', '-p', '@yarnpkg/cli-dist@4', 'which', 'yarn'])
      const file = (await yarn).trim()
      await mustRun(file, ['install'], at)
      said = await mustRun(file, ['node', 'main.js'], at)
    }
    expect(said.trim().split('\n')).toEqual(['200 200 429', '200 200 429'])
  })
})
