import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, relative } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { bundlePrograms } from '@weir/tooling/bundle'
import { freePort, until } from '@weir/tooling/redis-servers'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { blocksOf, PACKAGE, type Page } from './pages.ts'
import {
  curl,
  type Exchange,
  exchangesOf,
  expectOutputs,
  listening,
  nameOf,
  type Program,
  pageOf,
  REDIS,
  RUNTIMES,
  save,
  start,
  startRedis,
  starts,
} from './starts.ts'

vi.setConfig({ testTimeout: 120_000 })

const servers = starts.filter((page) => page.text.includes('curl ') && !RUNTIMES.includes(nameOf(page)))

test('every quick start is tried, and has fewer than 400 words', () => {
  expect(starts.map(nameOf).sort()).toEqual([...servers.map(nameOf), ...RUNTIMES, 'cron', 'jobs', 'outgoing-calls'].sort())
  for (const { path, text } of starts) expect(text.trim().split(/\s+/).length, path).toBeLessThan(400)
})

/**
 * Compiles a program of a page, as its reader does. Otherwise tsx would load packages twice that are ECMAScript modules, and that others
 * require.
 *
 * @returns the folder of the compiled file
 */
async function compiled(directory: string, file: string): Promise<string> {
  const source = relative(PACKAGE, join(directory, file.replace(/\.mjs$/, '.mts')))
  const folder = await bundlePrograms(PACKAGE, [source], ['@nestjs/*', 'ioredis', 'reflect-metadata', 'rxjs'])
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('the commands of a page run as with curl', async () => {
  const server = createServer(async (req, res) => {
    const { method, headers } = req
    res.setHeader('X-Type', `${headers['content-type']}`).end(`${method} ${headers['x-name']} ${await textOf(req)}`)
  })
  await new Promise<void>((resolve) => server.listen(0, resolve))
  onTestFinished(() => void server.close())
  const url = `http://localhost:${(server.address() as AddressInfo).port}/`
  const none = new Set<string>()
  expect(await curl(`curl ${url}`, none)).toBe('GET undefined ')
  expect(await curl(`curl -s -X PUT -H 'X-Name: a: b' ${url}`, none)).toBe('PUT a: b ')
  const sent = await curl(`curl -i -d 'a=1 2' ${url}`, new Set(['X-Type']))
  expect(sent).toBe('HTTP/1.1 200 OK\nX-Type: application/x-www-form-urlencoded\n\nPOST undefined a=1 2')
  for (const wrong of [`curl -k ${url}`, 'curl', `wget ${url}`]) await expect(curl(wrong, none)).rejects.toThrow()
})

/** Starts the server of a page, and runs the page's commands. Returns the output of each block beside the page's. */
async function tried(page: Page): Promise<readonly Exchange[]> {
  const port = await freePort()
  // A page whose first program needs Redis has a command that starts it.
  const redis = page.text.includes('docker run') ? { [REDIS]: await startRedis() } : {}
  const saved = save(page, { 3000: String(port), ...redis })
  expect(saved.files).toHaveLength(1)
  const file = saved.files[0] as string
  const isCompiled = page.text.includes('`npx tsc`')
  const server = isCompiled ? start(await compiled(saved.directory, file), file, []) : start(saved.directory, file)
  await listening(server, port)
  const exchanges = await exchangesOf(saved.page)
  await server.stop()
  return exchanges
}

describe('the output of a server is the output on its page', () => {
  test.each(servers.map((page) => [nameOf(page), page] as const))('%s', async (_name, page) => {
    await expectOutputs(() => tried(page))
  })
})

/** The output that a page shows. Replaces `…` between two numbered lines by the lines with the numbers between. */
function shownOn(page: Page): string {
  const output = blocksOf(page).find(({ info }) => info === 'text')
  if (output === undefined) throw new Error(`${page.path} shows no output`)
  return `${output.code}\n`.replace(/^(\D*)(\d+)(.*)\n…\n\1(\d+)\3$/m, (_all, before: string, first: string, after: string, last: string) =>
    Array.from({ length: Number(last) - Number(first) + 1 }, (_, index) => `${before}${Number(first) + index}${after}`).join('\n'),
  )
}

/** Replaces the duration that a program prints. On a busy machine programs don't start together, so it may be shorter or longer. */
const withoutDuration = (output: string): string => output.replace(/ in \d+ s$/m, ' in N s')

/** Runs programs to their ends. A program alone needs 5 s, and both need 10 s for their 100 turns if they share one pace. */
async function outputsOfPaced(programs: readonly Program[]): Promise<string[]> {
  const outputs = await Promise.all(programs.map(({ ended }) => ended))
  expect(Date.now() - Math.min(...programs.map(({ firstPrinted }) => firstPrinted))).toBeGreaterThan(8_000)
  return outputs.map(withoutDuration)
}

describe('the output of two processes is the output on their page', () => {
  test('cron', async () => {
    const { page, directory, files } = save(pageOf('cron'), { [REDIS]: await startRedis(), '60_000': '6_000', "'50s'": "'5s'" })
    const programs = files.map((file) => start(directory, file))
    const printed = until(() => programs.every(({ output }) => output !== ''), 'both processes print a line', 60_000)
    await Promise.race([printed, ...programs.map(({ ended }) => ended)])
    const lines = programs.map(({ output }) => output.split('\n', 1)[0])
    expect(lines.sort()).toEqual(shownOn(page).trim().split('\n').sort())
  })

  test('jobs', async () => {
    const { page, directory, files } = save(pageOf('jobs'), { [REDIS]: await startRedis() })
    const outputs = await outputsOfPaced(files.map((file) => start(directory, file)))
    const shown = withoutDuration(shownOn(page))
    expect(outputs).toEqual([shown, shown])
  })

  test('outgoing calls', async () => {
    const port = await freePort()
    // On a busy machine calls are late and arrive together, so this API has more capacity than the page's. Without a pace all 100 calls
    // would arrive within a second.
    const texts = { [REDIS]: await startRedis(), 3000: String(port), '++calls > 15': '++calls > 40' }
    const { page, directory, files } = save(pageOf('outgoing-calls'), texts)
    const [api = '', ...apps] = files
    await listening(start(directory, api), port)
    const outputs = await outputsOfPaced(apps.map((file) => start(directory, file)))
    const shown = withoutDuration(shownOn(page))
    expect(outputs).toEqual([shown, shown])
  })
})
