import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '@weir/tooling/redis-servers'
import { runtimeCommand } from '@weir/tooling/runtimes'
import { bundleWorker, Workerd } from '@weir/tooling/workerd'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Block, blocksOf, type Page, ROOT } from './pages.ts'
import {
  exchangesOf,
  expectOutputs,
  listening,
  type Program,
  pageOf,
  REDIS,
  type Saved,
  save,
  start,
  startRedis,
  withinMinute,
  withoutWaits,
} from './starts.ts'

vi.setConfig({ testTimeout: 60_000 })

/** The further program of a page, with several limits. */
function secondProgramOf(page: Page): string {
  const [, second] = blocksOf(page).filter(({ info }) => info.startsWith('ts')) as [Block, Block]
  return second.code
}

/** Expects a limit for all paths, another one for searches, and none for health checks. */
async function expectTwoLimits(urlOf: (path: string) => string): Promise<void> {
  const policies = async (path: string) => (await fetch(urlOf(path))).headers.get('ratelimit-policy')
  expect(await policies('/health')).toBe(null)
  expect(await policies('/')).toBe('"default";q=300;w=60')
  expect(await policies('/search')).toContain('"default";q=300;w=60')
}

describe.each(['bun', 'deno'] as const)('%s', (runtime) => {
  /** Starts a file by the command of the page. */
  async function served({ directory, commands }: Saved, file: string, port: number, ...more: readonly string[]): Promise<Program> {
    const [name, ...options] = (commands[0] as string).split(' ').slice(0, -1)
    expect(name).toBe(runtime)
    const server = start(directory, file, [...options, ...more, '--conditions=@weir/source'], runtimeCommand(runtime).file)
    await listening(server, port)
    return server
  }

  test('the output of the server is the output on its page', async () => {
    await expectOutputs(async () => {
      const port = await freePort()
      const saved = save(pageOf(runtime), { 3000: String(port) })
      const server = await served(saved, saved.files[0] as string, port)
      const exchanges = await exchangesOf(saved.page)
      await server.stop()
      return exchanges
    })
  })

  test('the program with Redis has two limits, and none for health checks', async () => {
    const port = await freePort()
    const saved = save(pageOf(runtime), { 3000: String(port), [REDIS]: await startRedis() })
    writeFileSync(join(saved.directory, 'second.ts'), secondProgramOf(saved.page))
    await served(saved, 'second.ts', port, ...(runtime === 'deno' ? ['--allow-env'] : []))
    await expectTwoLimits((path) => `http://localhost:${port}${path}`)
  })
})

describe('Workers', () => {
  const page = pageOf('workers')

  /** Runs a Worker with the Durable Objects of the page's configuration. */
  async function started(directory: string, file: string): Promise<Workerd> {
    const [config] = blocksOf(page).filter(({ info }) => info === 'json') as [Block]
    const { main, durable_objects, migrations } = JSON.parse(config.code)
    expect(main).toBe('src/index.ts')
    const classes: { name: string; class_name: string }[] = durable_objects.bindings
    expect(migrations[0].new_sqlite_classes).toEqual(classes.map(({ class_name }) => class_name))
    const bindings = Object.fromEntries(classes.map(({ name, class_name }) => [name, class_name]))
    const workerd = await Workerd.start(await bundleWorker(join(directory, file)), 1, bindings)
    onTestFinished(() => workerd.close())
    return workerd
  }

  test('the output of the server is the output on its page', async () => {
    const { directory } = save(page, {})
    await expectOutputs(async () => {
      const workerd = await started(directory, 'src/index.ts')
      const text = page.text.replaceAll('localhost:8787', new URL(workerd.url(0, '/')).host)
      return exchangesOf({ ...page, text }, { 'CF-Connecting-IP': '192.0.2.1' })
    })
  })

  test('the second program has two limits, and none for health checks', async () => {
    const { directory } = save(page, {})
    writeFileSync(join(directory, 'src/second.ts'), secondProgramOf(page))
    const workerd = await started(directory, 'src/second.ts')
    await expectTwoLimits((path) => workerd.url(0, path))
  })
})

test('Lambda: the handler prints the output of its page', async () => {
  const { page, directory, files } = save(pageOf('lambda'), {})
  const [shown] = blocksOf(page).filter(({ info }) => info === 'text') as [Block]
  const output = await withinMinute(() => start(directory, files[0] as string).ended)
  expect(withoutWaits(output)).toBe(withoutWaits(`${shown.code}\n`))
})

test('Next.js: the files of the page are those of the example, whose test builds and starts them', () => {
  const { directory } = save(pageOf('nextjs'), {})
  for (const file of ['app/api/create/route.ts', 'proxy.ts'])
    expect(readFileSync(join(directory, file), 'utf8'), file).toBe(readFileSync(join(ROOT, 'examples/nextjs', file), 'utf8'))
})
