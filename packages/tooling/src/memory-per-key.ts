import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** The number of characters of each request's long string, close to the limit of Node.js for all headers. */
const LONG = 14_000
/** The numbers of requests before the first measurement and between the two. Each request makes a new key. */
const WARM = 1_000
const MEASURED = 1_000
/** The number of requests in flight at a time. */
const AT_ONCE = 8

/** A policy's key, and requests that all have different keys under it. */
export interface MemoryCase {
  readonly name: string
  /** The `key` of the policy. Default: the adapter's default. */
  readonly key?: unknown
  readonly path?: (id: number) => string
  readonly headers?: (id: number) => Record<string, string>
}

/** An application with one policy, behind a proxy that it trusts. */
export interface MemoryServer {
  readonly port: number
  close(): unknown
}

/** Reads the URL from the framework's own request. */
export type UrlOf = (request: never) => string

const id9 = (id: number): string => String(100_000_000 + id)
const padding = 'x'.repeat(LONG)
/** Padding for values that become keys, because longer values are not used as keys. */
const asKey = 'x'.repeat(4_000)
/** An address of 15 characters, because V8 makes no slices of fewer than 13 characters. */
const address = (id: number): string => `100.1${10 + (id % 90)}.1${10 + (Math.floor(id / 90) % 90)}.1${10 + (Math.floor(id / 8100) % 90)}`

/** Cases whose keys are made from parts of long strings, each in another way. */
export function memoryCases(urlOf: UrlOf): readonly MemoryCase[] {
  return [
    {
      name: 'a long header',
      key: { header: 'x-key' },
      headers: (id) => ({ 'x-key': `${id9(id)}${asKey}`, 'x-other': padding.slice(asKey.length) }),
    },
    {
      name: 'two long headers together',
      key: [{ header: 'x-a' }, { header: 'x-b' }],
      headers: (id) => ({ 'x-a': `${id9(id)}${asKey}`, 'x-b': asKey }),
    },
    { name: "the adapter's default, of long paths", path: (id) => `/${letters(id)}/${padding}/` },
    {
      name: "the adapter's default, of many segments",
      path: (id) => `/${letters(id)}${'/some-name-that-goes-on-and-on-for-long'.repeat(300)}`,
    },
    { name: "the adapter's default, with a long query", path: (id) => `/${letters(id)}?${padding}` },
    {
      name: 'a part of a long URL',
      key: (req: never) => urlOf(req).slice(1, 40),
      path: (id) => `/${id9(id)}-and-what-makes-it-longer-than-that?${padding}`,
    },
    {
      name: 'a forwarded address',
      key: 'ip',
      headers: (id) => ({ 'x-forwarded-for': `${address(id)}${', 10.11.12.13'.repeat(LONG / 13)}` }),
    },
  ]
}

/** A word without digits, so that the adapter's default does not replace it as a varying part of a path. */
function letters(id: number): string {
  const word = Array.from(String(id).padStart(8, '0'), (digit) => String.fromCharCode(103 + Number(digit)))
  return `resource-${word.join('')}`
}

/** A message to the child: start an application for a case, or send the size of the heap. */
type Question = { readonly start: string } | 'heap'

/** Serves the cases in a child that `memoryPerKey` started. */
export function serveMemoryCases(start: (policy: object) => Promise<MemoryServer>, cases: readonly MemoryCase[]): void {
  let server: MemoryServer | undefined
  const answer = async (question: Question): Promise<number> => {
    if (question === 'heap') return heap()
    server?.close()
    const key = cases.find(({ name }) => name === question.start)?.key ?? 'route'
    server = await start({ limit: 1_000_000, interval: '1d', key })
    return server.port
  }
  process.on('message', (question: Question) => void answer(question).then((number) => process.send?.(number)))
  process.on('disconnect', () => process.exit())
}

async function heap(): Promise<number> {
  // Objects of this turn of the event loop are collected only in later turns.
  for (let i = 0; i < 4; i++) {
    await sleep(5)
    globalThis.gc?.()
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Further settings of `memoryPerKey`. */
export interface MemoryOptions {
  readonly requests?: number
  /** Options of Node.js, e.g. a small heap. */
  readonly execArgv?: readonly string[]
}

/**
 * Sends requests with long strings to a program in a fresh process, which calls `serveMemoryCases`.
 *
 * @param args of the program
 * @returns the bytes of the heap that each new key retains, by the names of the cases
 * @throws Error if the program ends, e.g. because it is out of memory
 */
export async function memoryPerKey(
  program: URL,
  args: readonly string[],
  cases: readonly MemoryCase[],
  { requests = MEASURED, execArgv = [] }: MemoryOptions = {},
): Promise<Record<string, number>> {
  const child = fork(fileURLToPath(program), args, {
    execArgv: ['--no-warnings', '--expose-gc', '--conditions=@weir/source', '--import', 'tsx', ...execArgv],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let errors = ''
  child.stderr?.on('data', (piece) => {
    errors += piece
  })
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`The program ended with ${code ?? signal}: ${errors.slice(-2000)}`)
  })
  ended.catch(() => {})
  const results: Record<string, number> = {}
  try {
    for (const one of cases) {
      const port = await Promise.race([ask(child, { start: one.name }), ended])
      const measured = async (from: number, to: number): Promise<number> => {
        await Promise.race([send(port, one, from, to), ended])
        return Promise.race([ask(child, 'heap'), ended])
      }
      // The very first requests also compile the program, so the first case needs more of them.
      const warm = one === cases[0] ? 2 * WARM : WARM
      const before = await measured(0, warm)
      results[one.name] = Math.round(((await measured(warm, warm + requests)) - before) / requests)
    }
  } finally {
    child.kill('SIGKILL')
  }
  return results
}

/**
 * The cases in which a key retains more than `most` bytes, by the smallest of three measurements in fresh processes. Retained memory
 * appears in each of them, but memory that was only not collected yet does not.
 */
export async function holdingMore(
  most: number,
  program: URL,
  args: readonly string[],
  cases: readonly MemoryCase[],
): Promise<Record<string, number>> {
  let over: Record<string, number> = {}
  let rest = cases
  for (let turn = 0; turn < 3 && rest.length > 0; turn++) {
    const measured = Object.entries(await memoryPerKey(program, args, rest)).filter(([, held]) => held > most)
    over = Object.fromEntries(measured.map(([name, held]) => [name, Math.min(held, over[name] ?? held)]))
    rest = cases.filter(({ name }) => over[name] !== undefined)
  }
  return over
}

async function ask(child: ChildProcess, question: Question): Promise<number> {
  child.send(question)
  return (await once(child, 'message'))[0]
}

/** Sends requests on a new connection, and waits for all responses. */
async function send(port: number, { path, headers }: MemoryCase, from: number, to: number): Promise<void> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  const text = (id: number): string => {
    const fields = Object.entries({ host: 'localhost', ...headers?.(id) }).map(([name, value]) => `${name}: ${value}\r\n`)
    return `GET ${path?.(id) ?? '/'} HTTP/1.1\r\n${fields.join('')}\r\n`
  }
  let sent = from
  let answered = from
  let rest = ''
  const more = (): void => {
    while (sent < to && sent - answered < AT_ONCE) socket.write(text(sent++))
  }
  await new Promise<void>((resolve, reject) => {
    socket.on('connect', more)
    socket.on('data', (piece) => {
      const parts = (rest + piece).split(/HTTP\/1\.1 (\d+)/)
      // The last characters may be the beginning of the next response.
      rest = (parts.at(-1) as string).slice(-12)
      for (let i = 1; i < parts.length; i += 2) {
        if (parts[i] !== '200' && parts[i] !== '404') reject(new Error(`A request was answered with ${parts[i]}.`))
        answered++
      }
      if (answered === to) resolve()
      else more()
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('The connection was closed.')))
  }).finally(() => socket.destroy())
}
