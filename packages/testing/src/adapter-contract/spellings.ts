import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Decision, PathMatch, PolicyOptions } from '@weir/core'
import { paths } from '@weir/core/http'
import { SeededRandom } from '../random/random.ts'

/** A handler of an application, and a policy that matches it. */
export interface SpelledRoute {
  /** Sets the `match` of the policy, which is also the name of the handler in its answer. */
  readonly match: string
  /** Sets a path that leads to the handler. */
  readonly path: string
  /**
   * Limits how many route keys the requests to the handler may make.
   *
   * @default 2, or any number if the path has a parameter
   */
  readonly keys?: number
}

/** The answer of a handler of an application under test, as JSON. `spelledAnswer` makes it. */
interface SpelledAnswer {
  /** The `match` of the route whose handler was reached. */
  readonly handler: string
  /** The `match` of each policy that counted the request. */
  readonly counted: readonly string[]
  /** The route key. */
  readonly key: string
}

/** Makes the policies of an application under test: one for each route, and one by route key. None of them ever rejects a request. */
export function spellingPolicies(routes: readonly SpelledRoute[]): readonly SpelledPolicy[] {
  const policies = routes.map(
    ({ match }): SpelledPolicy => ({ name: encodeURI(match), match: paths(match), key: 'all', limit: 1e12, interval: '365d' }),
  )
  return [...policies, { name: 'route', key: 'route', limit: 1e12, interval: '365d' }]
}

type SpelledPolicy = Pick<PolicyOptions, 'limit' | 'interval'> & { name: string; key: 'all' | 'route'; match?: PathMatch }

/** Makes the answer of a handler. */
export function spelledAnswer(handler: string, decision: Decision | null | undefined): SpelledAnswer {
  const parts = decision?.parts ?? []
  return { handler, counted: parts.map(({ policy }) => decodeURI(policy?.name ?? '')), key: parts.at(-1)?.key ?? '' }
}

/** Options of `trySpellings`. */
export interface SpellingOptions {
  /** Sets the port of the application on the loopback address. */
  readonly port: number
  /** Lists the application's routes, and the `match` of each. */
  readonly routes: readonly SpelledRoute[]
  /**
   * Sets how many targets are sent.
   *
   * @default 2500
   */
  readonly count?: number
  /**
   * Fixes the targets that are tried. The message of a failure contains it.
   *
   * @default the environment variable `FC_SEED`, or 1
   */
  readonly seed?: string | number
}

/** The result of all spellings. */
export interface SpellingResult {
  /** The number of targets that reached a handler. */
  readonly reached: number
  /** The number of them that were not exactly the path of a route. */
  readonly oddly: number
}

/**
 * Sends thousands of spellings of an application's paths over real sockets, and compares the handler that each one reached with the
 * policies that counted it. A request that reaches a handler must be counted by the policy that matches this handler.
 *
 * @throws AssertionError with the targets that were not counted, and the seed
 */
export async function trySpellings({
  port,
  routes,
  count = 2500,
  seed = process.env['FC_SEED'] ?? 1,
}: SpellingOptions): Promise<SpellingResult> {
  const random = new SeededRandom(seed)
  const targets = Array.from({ length: count }, () => spelling(random, (pick(random, routes) as SpelledRoute).path))
  const answers = await ask(port, targets)
  const escaped: string[] = []
  const keysOf = new Map<string, Map<string, string>>()
  let reached = 0
  let oddly = 0
  for (let i = 0; i < count; i++) {
    const answer = answers[i]
    if (answer === undefined) continue
    const target = targets[i] as string
    reached++
    if (!routes.some(({ path }) => path === target)) oddly++
    if (!answer.counted.includes(answer.handler)) escaped.push(`${JSON.stringify(target)} reached ${answer.handler} uncounted`)
    const made = keysOf.get(answer.handler) ?? new Map<string, string>()
    keysOf.set(answer.handler, made.set(answer.key, target))
  }
  for (const { match, keys = /[:*{]/.test(match) ? Number.POSITIVE_INFINITY : 2 } of routes) {
    const made = [...(keysOf.get(match) ?? [])].map(([key, target]) => `${key} by ${JSON.stringify(target)}`)
    if (made.length > keys) escaped.push(`${match} has ${made.length} route keys: ${made.slice(0, 10).join(', ')}`)
  }
  assert.deepEqual(escaped.slice(0, 20), [], `${escaped.length} of ${count} escaped (FC_SEED=${seed})`)
  return { reached, oddly }
}

const PREFIXES = [
  'http://h',
  'HTTP://h',
  'https://u:p@h:1',
  'http://h?',
  'http://h;x',
  "http://h'",
  'http://',
  'foo://h',
  '//h',
  '/\\h',
  '/',
  '*',
  '/..',
  '/x;',
]
const SUFFIXES = [
  '/',
  '//',
  '\\',
  '#',
  '#x',
  '\\#',
  '/#',
  '?',
  '?x=/y',
  '\\?#',
  '\\? ',
  ';',
  ';x',
  ';/..',
  '.',
  '/.',
  '/..',
  '\\..',
  '/%2e',
  '%20',
  '%09',
  '%23',
  '%3b',
  '%3F',
  '%2f',
  '%5C',
  '%00',
  '\t',
  '\xa0',
  '\xa0#',
  '#\\',
]
const SLASHES = [
  '\\',
  '//',
  '/\\',
  '\\/',
  '%2f',
  '%5C',
  '/./',
  '/x/../',
  '/x\\..\\',
  '/%2e/',
  '/x/%2E%2e/',
  '/.%2e/',
  '/x//../',
  '/;/',
  '/;x/',
  '/#/',
  '/?/',
  '/\t/',
]
const JUNK = [
  '/',
  '\\',
  ';',
  '#',
  '?',
  '%',
  '.',
  '..',
  '//',
  '%2f',
  '%5c',
  '%21',
  '%27',
  '%28',
  '%25',
  '\t',
  '\f',
  '\xa0',
  '\xe9',
  '!',
  "'",
  '(',
  '|',
  '{',
  '"',
  '<',
  '^',
  '`',
  ':',
  '@',
  '&',
  '*',
  'x',
]

/** Restores a target that the client could not send, before the framework reads the request. */
export function restoreTarget(request: IncomingMessage): void {
  const target = request.headers['x-target']
  if (typeof target === 'string') request.url = decodeURIComponent(target)
}

/** Makes a target that some routers treat as the path. */
export function spelling(random: SeededRandom, path: string): string {
  let target = path
  for (let changes = random.below(4); changes > 0; changes--) target = changed(random, target)
  if (random.below(4) === 0) target += pick(random, SUFFIXES)
  if (random.below(6) === 0) target = pick(random, PREFIXES) + target
  return target
}

function changed(random: SeededRandom, text: string): string {
  const at = random.below(text.length)
  const replace = (by: string, length = 1) => text.slice(0, at) + by + text.slice(at + length)
  const character = text[at] as string
  switch (random.below(6)) {
    case 0:
      return random.below(2) === 0 ? text.toUpperCase() : replace(character.toUpperCase())
    case 1:
    case 2: {
      const hex = character.charCodeAt(0).toString(16).padStart(2, '0')
      return replace(`%${random.below(2) === 0 ? hex : hex.toUpperCase()}`)
    }
    case 3: {
      const slash = text.indexOf('/', at)
      return slash === -1 ? text + pick(random, SUFFIXES) : text.slice(0, slash) + pick(random, SLASHES) + text.slice(slash + 1)
    }
    case 4:
      return replace(pick(random, JUNK), random.below(2))
    default:
      return text + pick(random, SUFFIXES)
  }
}

function pick<Item>(random: SeededRandom, items: readonly Item[]): Item {
  return items[random.below(items.length)] as Item
}

/** Sends targets over a few connections. The answer is undefined if a target reached no handler. */
async function ask(port: number, targets: readonly string[]): Promise<readonly (SpelledAnswer | undefined)[]> {
  const answers: (SpelledAnswer | undefined)[] = []
  let next = 0
  const client = async () => {
    let socket: Socket | undefined
    while (next < targets.length) {
      const place = next++
      socket ??= await open(port)
      const response = await exchange(socket, targets[place] as string)
      if (response.over) {
        socket.destroy()
        socket = undefined
      }
      answers[place] = answerOf(response.body)
    }
    socket?.destroy()
  }
  await Promise.all(Array.from({ length: 8 }, client))
  return answers
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket.setNoDelay()))
    // Later errors are followed by a close, which `exchange` handles.
    socket.on('error', reject)
  })
}

/** Sends one request on a connection, which stays open if the server allows it. */
function exchange(socket: Socket, target: string): Promise<{ body: string; over: boolean }> {
  return new Promise((resolve) => {
    let text = ''
    const settle = (body: string, over: boolean) => {
      socket.off('data', hear).off('close', end)
      resolve({ body, over })
    }
    const end = () => settle('', true)
    const hear = (piece: Buffer) => {
      text += piece.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      if (head === -1) return
      const fields = text.slice(0, head)
      const length = Number(/^content-length: *(\d+)/im.exec(fields)?.[1] ?? Number.NaN)
      const over = Number.isNaN(length) || /^connection: *close/im.test(fields)
      const body = text.slice(head + 4)
      if (Number.isNaN(length) || body.length >= length) settle(body, over)
    }
    socket.on('data', hear).once('close', end)
    // Node.js rejects some characters that HTTP/2 and other servers accept. `restoreTarget` puts them back.
    const sendable = /^[\x21-\x7e]*$/.test(target)
    const field = sendable ? '' : `x-target: ${encodeURIComponent(target)}\r\n`
    socket.write(`GET ${sendable ? target : '/'} HTTP/1.1\r\nHost: h\r\n${field}\r\n`)
  })
}

function answerOf(body: string): SpelledAnswer | undefined {
  try {
    const answer = JSON.parse(Buffer.from(body, 'latin1').toString('utf8'))
    return typeof answer.handler === 'string' ? answer : undefined
  } catch {
    return undefined
  }
}
