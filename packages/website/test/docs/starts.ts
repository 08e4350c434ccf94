import { spawn } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { RedisServer, until } from '@weir/tooling/redis-servers'
import { expect, onTestFinished } from 'vitest'
import { blocksOf, PACKAGE, type Page, pages } from './pages.ts'

export const starts: readonly Page[] = pages().filter(({ path }) => path.startsWith(join('docs', 'start')))
export const nameOf = ({ path }: Page): string => basename(path, '.md')

/** The quick starts for other runtimes and platforms. They have a test file of their own. */
export const RUNTIMES: readonly string[] = ['bun', 'deno', 'lambda', 'nextjs', 'workers']

export function pageOf(name: string): Page {
  const page = starts.find((one) => nameOf(one) === name)
  if (page === undefined) throw new Error(`There is no quick start ${name}`)
  return page
}

/** A page and its files, which are saved below this package so that their imports resolve. */
export interface Saved {
  readonly page: Page
  readonly directory: string
  /** The commands by which the page starts programs, in order. A command for two terminals is listed twice. */
  readonly commands: readonly string[]
  /** The files that these commands start. */
  readonly files: readonly string[]
}

/** @param texts - replacements, by the text on the page */
export function save({ path, text }: Page, texts: Readonly<Record<string, string>>): Saved {
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
    const [, file] = /^Save this as `([\w./]+)`/.exec(paragraph) ?? []
    if (file !== undefined) {
      mkdirSync(dirname(join(directory, file)), { recursive: true })
      writeFileSync(join(directory, file), `${code}\n`)
    }
    for (const [, content = '', name = ''] of code.matchAll(/^echo '([^']*)' > ([\w.]+)$/gm)) writeFileSync(join(directory, name), content)
  }
  const started = changed.replaceAll('\n', ' ').matchAll(/start it with `([^`]+)`( in two terminals)?/gi)
  const commands = [...started].flatMap(([, command = '', twice]) => (twice === undefined ? [command] : [command, command]))
  return { page, directory, commands, files: commands.map((command) => command.split(' ').at(-1) as string) }
}

export interface Program {
  /** The standard output so far. */
  output: string
  /** When the program printed first, milliseconds since the epoch. */
  firstPrinted: number
  /** The whole output. Rejects if the program fails. */
  readonly ended: Promise<string>
  stop(): Promise<void>
}

/** Options of Node.js for a program that imports the sources of this repository. */
const FROM_SOURCE: readonly string[] = ['--conditions=@weir/source', '--import', 'tsx']

/** Starts a program, by default with Node.js. It runs until the test ends at most. */
export function start(
  directory: string,
  file: string,
  options: readonly string[] = FROM_SOURCE,
  runtime: string = process.execPath,
): Program {
  // Vitest sets a NODE_ENV that a reader doesn't have.
  const { NODE_ENV: _, ...env } = process.env
  const child = spawn(runtime, [...options, file], { cwd: directory, env })
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

/** Waits until a program listens on `port`, without sending a request, because the program would count it. */
export async function listening(server: Program, port: number): Promise<void> {
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
 * @param added - headers that a platform would add to the request
 * @returns the output
 */
export async function curl(command: string, shown: ReadonlySet<string>, added: Readonly<Record<string, string>> = {}): Promise<string> {
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
    request(url, { method, headers: { ...added, ...form, ...headers }, agent: false }, resolve)
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

/** Replaces each number of seconds that lies between 1 and the length of the interval in the policy's header, or a minute. */
export function withoutWaits(output: string): string {
  const length = Number(/;w=(\d+)/.exec(output)?.[1] ?? 60)
  return output.replace(
    /(;t=|^(?:x-)?retry-after: |(?:try again|retry) in )(\d+)( seconds?| minute)?/gim,
    (all, before: string, seconds: string) => (Number(seconds) >= 1 && Number(seconds) <= length ? `${before}N` : all),
  )
}

export interface Exchange {
  readonly expected: string
  readonly output: string
}

/**
 * Runs the commands of a page.
 *
 * @param added - headers that a platform would add to each request
 * @returns the output of each block beside the page's
 */
export async function exchangesOf(page: Page, added?: Readonly<Record<string, string>>): Promise<readonly Exchange[]> {
  const exchanges: Exchange[] = []
  for (const { code, output } of blocksOf(page)) {
    if (!code.startsWith('curl ')) continue
    const expected = output ?? ''
    const shown = new Set([...expected.matchAll(/^([\w-]+): /gm)].map(([, name]) => name as string))
    let printed = ''
    for (const command of code.split('\n')) printed += await curl(command, shown, added)
    exchanges.push({ expected: withoutWaits(expected.trim()), output: withoutWaits(printed.trim()) })
  }
  return exchanges
}

/** Repeats a try if the minute has changed meanwhile: the limits' intervals start with it, so its last requests had more quota. */
export async function withinMinute<T>(tried: () => Promise<T>): Promise<T> {
  const minute = () => Math.floor(Date.now() / 60_000)
  const started = minute()
  const result = await tried()
  return minute() === started ? result : tried()
}

/**
 * Expects the output of a server to be the output on its page, where the last request is rejected.
 *
 * @param tried - starts the server, runs the page's commands, and stops it
 */
export async function expectOutputs(tried: () => Promise<readonly Exchange[]>): Promise<void> {
  const exchanges = await withinMinute(tried)
  expect(exchanges.map(({ output }) => output)).toEqual(exchanges.map(({ expected }) => expected))
  expect(exchanges.at(-1)?.output).toContain(' 429 ')
}

/** Starts a server until the test ends. Returns its URL. */
export async function startRedis(): Promise<string> {
  const redis = await RedisServer.start()
  onTestFinished(() => redis.stop())
  return redis.url
}

/** The address of Redis on the pages. */
export const REDIS = 'redis://localhost:6379'
