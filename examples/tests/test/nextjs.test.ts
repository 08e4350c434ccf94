import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mustRun } from '@weir/tooling/run'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { connectionsOf, type PrivateRedis, startRedis } from '../src/redis.ts'
import { directoryOf, type Program, startNode } from './program.ts'

const TIMEOUT = { timeout: 180_000 }
const EXAMPLE = directoryOf('nextjs')
const NEXT = join(EXAMPLE, 'node_modules/next/dist/bin/next')
const PACKAGES = ['core', 'redis', 'web']
/** The limit of `POST /api/create`, and that of the proxy. */
const [CREATE, API] = [10, 20]

const redis: PrivateRedis | undefined = await startRedis()
/** A copy of the example, beside its dependencies, because the test edits it. Next.js does not compile files in `node_modules`. */
const app = mkdtempSync(join(EXAMPLE, '.app-'))
const started: Program[] = []

const ENV: NodeJS.ProcessEnv = { NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: undefined }

/** @param database of Redis */
async function next(command: 'start' | 'dev', database: number): Promise<Program> {
  const env = { ...ENV, REDIS_URL: `${redis?.url}/${database}` }
  const program = await startNode(app, [NEXT, command, '--hostname', '127.0.0.1', '--port', '0'], env)
  started.push(program)
  return program
}
const stop = () => Promise.all(started.splice(0).map((program) => program.stop()))

beforeAll(async () => {
  if (redis === undefined) return
  for (const file of ['app', 'proxy.ts', 'package.json']) cpSync(join(EXAMPLE, file), join(app, file), { recursive: true })
  for (const file of ['app/api/create/route.ts', 'proxy.ts'].map((name) => join(app, name))) {
    const code = readFileSync(file, 'utf8')
    expect(code).toContain("interval: '1h'")
    // Longer, because the counts must not begin again during the test.
    writeFileSync(file, code.replace("interval: '1h'", "interval: '23h'"))
  }
  writeFileSync(join(app, 'tsconfig.json'), '{ "extends": "../tsconfig.json" }\n')
  // The script `typecheck` of the example checks its types.
  writeFileSync(join(app, 'next.config.mjs'), 'export default { typescript: { ignoreBuildErrors: true } }\n')
  await Promise.all(
    PACKAGES.map(async (name) => {
      const source = join(EXAMPLE, '../../packages', name)
      const target = join(app, 'node_modules/@weir', name)
      const code = `import('@weir/tooling/ship').then(({ bundlePackage }) => bundlePackage(${JSON.stringify(join(target, 'dist'))}))`
      await mustRun(process.execPath, ['-e', code], { cwd: source })
      for (const file of ['package.json', 'src']) cpSync(join(source, file), join(target, file), { recursive: true })
    }),
  )
  // The build evaluates the modules. It must not connect: no store is at this address.
  const env = { ...process.env, ...ENV, REDIS_URL: 'redis://127.0.0.1:1' }
  expect(await mustRun(process.execPath, [NEXT, 'build'], { cwd: app, env })).not.toMatch(/WEIR_|ECONNREFUSED/)
  await Promise.all([next('start', 0), next('start', 0)])
}, 600_000)
afterAll(async () => {
  await stop()
  await redis?.stop()
  rmSync(app, { recursive: true, force: true })
})

let clients = 0
const newClient = (): string => `203.0.113.${++clients}`

const create = ({ url }: Program, client: string): Promise<Response> =>
  fetch(`${url}/api/create`, { method: 'POST', body: 'a thing', headers: { 'X-Forwarded-For': client } })
const hello = ({ url }: Program, client: string): Promise<Response> => fetch(`${url}/api/hello`, { headers: { 'X-Forwarded-For': client } })

const remainingIn = ({ headers }: Response): number => Number(/;r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1])

describe.skipIf(redis === undefined)('the nextjs example', () => {
  it.each([
    ['a route handler', create, CREATE, 'create', 201, '{"created":"a thing"}'],
    ['the proxy', hello, API, 'api', 200, 'Hello from Next.js\n'],
  ] as const)('limits %s, for two processes together', TIMEOUT, async (_, send, limit, name, status, body) => {
    const [one, two] = started as [Program, Program]
    // Both have connected.
    for (const program of [one, two]) expect((await send(program, newClient())).status).toBe(status)
    const client = newClient()
    for (let remaining = limit - 1; remaining >= 0; remaining--) {
      const response = await send(one, client)
      expect([response.status, remainingIn(response)]).toEqual([status, remaining])
      expect(await response.text()).toBe(body)
    }
    let allowed = 0
    const rejected = await vi.waitFor(
      async () => {
        const response = await send(two, client)
        if (response.status === status) allowed++
        expect(response.status).toBe(429)
        return response
      },
      { timeout: 20_000, interval: 200 },
    )
    // Alone, the second process would allow the whole limit.
    expect(allowed).toBeLessThan(limit / 2)
    expect(rejected.headers.get('ratelimit')).toMatch(new RegExp(`^"${name}";r=0;t=`))
    expect(rejected.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(await rejected.json()).toMatchObject({ status: 429, 'violated-policies': [name] })
    for (const { output } of [one, two]) expect(output()).not.toMatch(/WEIR_|⨯/)
  })

  it('keeps its counts and its connections during hot reloads', TIMEOUT, async () => {
    await stop()
    const development = await next('dev', 1)
    const file = join(app, 'app/api/create/route.ts')
    const edit = (from: string, to: string) => writeFileSync(file, readFileSync(file, 'utf8').replace(from, to))
    const client = newClient()
    expect((await hello(development, client)).status).toBe(200)
    expect(remainingIn(await create(development, client))).toBe(CREATE - 1)
    const connections = await connectionsOf(redis as PrivateRedis)
    let counted = 1
    const reloaded = async (status: number, limit: number): Promise<void> => {
      await vi.waitFor(
        async () => {
          const response = await create(development, client)
          counted++
          expect([response.status, remainingIn(response)]).toEqual([status, limit - counted])
        },
        { timeout: 60_000, interval: 250 },
      )
    }
    edit('status: 201', 'status: 202')
    await reloaded(202, CREATE)
    edit('limit: 10', 'limit: 1000')
    await reloaded(202, 1000)
    edit('const redis', '// Moves the line.\nconst redis')
    edit('status: 202', 'status: 203')
    await reloaded(203, 1000)
    expect(await connectionsOf(redis as PrivateRedis)).toBe(connections)
    expect(development.output()).not.toMatch(/WEIR_|⨯/)
  })
})
