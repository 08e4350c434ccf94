import { spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { basename, join, relative } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { bundlePrograms } from '@weir/tooling/bundle'
import { freePort, RedisServer, until } from '@weir/tooling/redis-servers'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { blocksOf, PACKAGE, type Page, pages } from './pages.ts'

vi.setConfig({ testTimeout: 120_000 })

const starts = pages().filter(({ path }) => path.startsWith(join('docs', 'start')))
const nameOf = ({ path }: Page): string => basename(path, '.md')
const servers = starts.filter(({ text }) => text.includes('curl '))

function pageOf(name: string): Page {
  const page = starts.find((one) => nameOf(one) === name)
  if (page === undefined) throw new Error(`There is no quick start ${name}`)
  return page
}

test('every quick start is tried here, and has fewer than 400 words', () => {
  expect(starts.map(nameOf).sort()).toEqual([...servers.map(nameOf), 'cron', 'jobs', 'outgoing-calls'].sort())
  for (const { path, text } of starts) expect(text.trim().split(/\s+/).length, path).toBeLessThan(400)
})

/** A page and its files, which are saved below this package so that their imports resolve. */
interface Saved {
  readonly page: Page
  readonly directory: string
  /** The files that the page starts, in order. A file that it starts in two terminals is listed twice. */
  readonly files: readonly string[]
}

/** @param texts - replacements, by the text on the page */
function save({ path, text }: Page, texts: Readonly<Record<string, string>>): Saved {
  const changed = Object.entries(texts).reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`${path} does not contain ${from}`)
    return before.replaceAll(from, to)
  }, text)
  const page = { path, text: changed }
  const directory = join(PACKAGE, 'dist', 'start', nameOf(page))
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  const lines = changed.split('\n')
  for (const { code, line } of blocksOf(page)) {
    const paragraph = lines.slice(lines.lastIndexOf('', line - 3) + 1, line - 1).join(' ')
    const [, file] = /^Save this as `([\w.]+)`/.exec(paragraph) ?? []
    if (file !== undefined) writeFileSync(join(directory, file), `${code}\n`)
    for (const [, content = '', name = ''] of code.matchAll(/^echo '([^']*)' > ([\w.]+)$/gm)) writeFileSync(join(directory, name), content)
  }
  const commands = changed.replaceAll('\n', ' ').matchAll(/start it with `(?:node|npx tsx) ([\w.]+)`( in two terminals)?/gi)
  const files = [...commands].flatMap(([, file = '', twice]) => (twice === undefined ? [file] : [file, file]))
  return { page, directory, files }
}

interface Program {
  /** The standard output so far. */
  output: string
  /** When the program printed first, milliseconds since the epoch. */
  firstPrinted: number
  /** The whole output. Rejects if the program fails. */
  readonly ended: Promise<string>
  stop(): Promise<void>
}

/** Options of Node.js for a program that imports the sources of this repository. */
const FROM_SOURCE = ['--conditions=@weir/source', '--import', 'tsx']

/** Starts a program, which runs until the test ends at most. */
function start(directory: string, file: string, options: readonly string[] = FROM_SOURCE): Program {
  // Vitest sets a NODE_ENV that a reader doesn't have.
  const { NODE_ENV: _, ...env } = process.env
  const child = spawn(process.execPath, [...options, file], { cwd: directory, env })
  const closed = new Promise<number | null>((resolve) => child.on('close', resolve))
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (data) => (errors += data))
  const program: Program = {
    output: '',
    firstPrinted: Number.POSITIVE_INFINITY,
    ended: closed.then((status) => {
      if (status !== 0) throw new Error(`${file} ended with ${status}\n${program.output}${errors}`)
      return program.output
    }),
    async stop() {
      child.kill('SIGKILL')
      await closed
    },
  }
  child.stdout.setEncoding('utf8').on('data', (data) => {
    program.firstPrinted = Math.min(program.firstPrinted, Date.now())
    program.output += data
  })
  program.ended.catch(() => {})
  onTestFinished(program.stop)
  return program
}

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

/** Waits until a program listens on `port`, without sending a request, because the program would count it. */
async function listening(server: Program, port: number): Promise<void> {
  const connected = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, 'localhost')
      socket.on('error', () => resolve(false))
      socket.on('connect', () => {
        socket.destroy()
        resolve(true)
      })
    })
  await Promise.race([until(connected, `a program listens on port ${port}`, 60_000), server.ended])
}

/**
 * Runs a command with curl, which may not be installed. Fails if it has an option that isn't listed here.
 *
 * @param shown - the names of the headers to print with `-i`
 * @returns the output
 */
async function curl(command: string, shown: ReadonlySet<string>): Promise<string> {
  const [program, ...args] = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => (quoted ?? plain) as string)
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      include: { type: 'boolean', short: 'i' },
      silent: { type: 'boolean', short: 's' },
      request: { type: 'string', short: 'X' },
      header: { type: 'string', short: 'H', multiple: true, default: [] },
      data: { type: 'string', short: 'd' },
    },
  })
  const [url, ...others] = positionals
  if (program !== 'curl' || url === undefined || others.length > 0) throw new Error(`Not a curl command with one URL: ${command}`)
  const { data, header, include } = values
  const form = data === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }
  const headers = Object.fromEntries(header.map((field) => /^(.+?): *(.*)$/.exec(field)?.slice(1) ?? [field, '']))
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const method = values.request ?? (data === undefined ? 'GET' : 'POST')
    request(url, { method, headers: { ...form, ...headers }, agent: false }, resolve)
      .on('error', reject)
      .end(data)
  })
  const body = await textOf(response)
  if (!include) return body
  const fields = response.rawHeaders.flatMap((name, index, raw) => (index % 2 === 0 ? [`${name}: ${raw[index + 1]}`] : []))
  const lines = [
    `HTTP/${response.httpVersion} ${response.statusCode} ${response.statusMessage}`,
    ...fields.filter((field) => shown.has(field.split(':', 1)[0] as string)),
  ]
  return `${lines.join('\n')}\n\n${body}`
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

/** Replaces each number of seconds that lies between 1 and the length of the interval in the policy's header, or a minute. */
function withoutWaits(output: string): string {
  const length = Number(/;w=(\d+)/.exec(output)?.[1] ?? 60)
  return output.replace(
    /(;t=|^(?:x-)?retry-after: |(?:try again|retry) in )(\d+)( seconds?| minute)?/gim,
    (all, before: string, seconds: string) => (Number(seconds) >= 1 && Number(seconds) <= length ? `${before}N` : all),
  )
}

interface Exchange {
  readonly expected: string
  readonly output: string
}

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
  const exchanges: Exchange[] = []
  for (const { code, output } of blocksOf(saved.page)) {
    if (!code.startsWith('curl ')) continue
    const expected = output ?? ''
    const shown = new Set([...expected.matchAll(/^([\w-]+): /gm)].map(([, name]) => name as string))
    let printed = ''
    for (const command of code.split('\n')) printed += await curl(command, shown)
    exchanges.push({ expected: withoutWaits(expected.trim()), output: withoutWaits(printed.trim()) })
  }
  await server.stop()
  return exchanges
}

describe('the output of a server is the output on its page', () => {
  test.each(servers.map((page) => [nameOf(page), page] as const))('%s', async (_name, page) => {
    const minute = () => Math.floor(Date.now() / 60_000)
    const started = minute()
    let exchanges = await tried(page)
    // The limits' intervals start with the minute. If it has changed, the last requests had more quota than on the page.
    if (minute() !== started) exchanges = await tried(page)
    expect(exchanges.map(({ output }) => output)).toEqual(exchanges.map(({ expected }) => expected))
    expect(exchanges.at(-1)?.output).toContain(' 429 ')
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

/** Starts a server until the test ends. Returns its URL. */
async function startRedis(): Promise<string> {
  const redis = await RedisServer.start()
  onTestFinished(() => redis.stop())
  return redis.url
}

const REDIS = 'redis://localhost:6379'

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
