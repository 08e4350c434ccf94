import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createThrottler, type Throttler } from '@weir/core'
import { redisStore } from '@weir/redis'
import { bundlePrograms } from '@weir/tooling/bundle'
import { RedisServer } from '@weir/tooling/redis-servers'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type Ended, file, line, rules } from './weir.ts'

const document = rules('rules.json', {})

const KEYS = ['--rules', document]
/** Commands that use a store, and their output if it answers. */
const AT_STORE: readonly (readonly [args: readonly string[], out: RegExp])[] = [
  [['usage', 'ann', ...KEYS], /│ client │ ann │ +0 │ +10 │/],
  [['explain', 'ann', ...KEYS], /│ client │ ann │ .*│ allowed +│/],
  [['block', 'ann', '--for', '1s', ...KEYS], /^ann is blocked for 1 s\.\n$/],
  [['unblock', 'ann', ...KEYS], /^ann is not blocked any more\.\n$/],
  [['reset', 'ann', ...KEYS], /^Counts of ann reset\.\n$/],
  [['top'], /process(?:es)?\n/],
  [['audit', '--most', '5'], /│ reset/],
]
/** Commands that use a source of rules, in an order in which each has an effect. */
const AT_SOURCE: readonly (readonly [args: readonly string[], out: RegExp])[] = [
  [['push', document], /^The source now contains version 1\.\n$/],
  [['diff', document], /^version 1 → version 1\n/],
  [['log'], /^version 1\n$/],
  [['rollback', '1'], /version 1/],
]
/** Commands that need no store and no source. */
const LOCAL: readonly (readonly [args: readonly string[], out: RegExp])[] = [
  [['check', document], /./],
  [['plan', file('access.log', `${line(0, '192.0.2.1')}\n`), '--rules', document], /./],
  [['suggest', file('access-too.log', `${line(0, '192.0.2.1')}\n`)], /./],
  [['completion', 'bash'], /complete /],
]
const WRONG: readonly (readonly [args: readonly string[], why: RegExp])[] = [
  [[], /Usage: weir/],
  [['nonsense'], /unknown command 'nonsense'/],
  [['usage', 'ann', ...KEYS], /'--store <address>'/],
  [['usage', 'ann', '--store', 'redis://127.0.0.1:1'], /'--rules <file>'/],
  [['usage', ...KEYS, '--store', 'redis://127.0.0.1:1'], /missing required argument 'key'/],
  [['top', '--store', 'redis://127.0.0.1:none'], /Use a URL like redis:/],
  [['top', '--store', 'postgres://127.0.0.1:none/weir'], /^weir: /],
  [['top', '--store', 'http://127.0.0.1:none'], /can not be read/],
  [['log', '--source', 'redis://127.0.0.1:none'], /Use a URL like redis:/],
  [['plan', '/none', ...KEYS], /no such file/],
  [['check', '/none'], /no such file/],
]

let folder: string
let redis: RedisServer
let hung: Server
const hanging = new Set<Socket>()

beforeAll(async () => {
  folder = await bundlePrograms(fileURLToPath(new URL('..', import.meta.url)), ['test/fixtures/main.ts'], ['ioredis', 'pg'])
  redis = await RedisServer.start()
  hung = createServer((socket) => {
    hanging.add(socket)
    socket.on('error', () => {})
  })
  hung.listen(0, '127.0.0.1')
  await once(hung, 'listening')
}, 60_000)
afterAll(async () => {
  for (const socket of hanging) socket.destroy()
  hung.close()
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs the command in its own process, so that only its own handles keep it alive. */
async function weir(...args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [join(folder, 'main.mjs'), ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const said = { out: '', err: '' }
  child.stdout.on('data', (piece) => {
    said.out += piece
  })
  child.stderr.on('data', (piece) => {
    said.err += piece
  })
  // Kills the process after more time than three timeouts of a store.
  const late = setTimeout(() => child.kill('SIGKILL'), 30_000)
  const [code] = await once(child, 'close')
  clearTimeout(late)
  return { code, ...said }
}

it('each command ends by itself when its store answers, and does what it is asked for', { timeout: 120_000 }, async () => {
  const { policies } = JSON.parse(readFileSync(document, 'utf8'))
  const node = createThrottler({ policies, store: redisStore(redis.url) }).start() as Throttler
  onTestFinished(() => node.close())
  await expect.poll(() => node.state).toBe('synced')
  for (const [args, out] of AT_STORE)
    expect(await weir(...args, '--store', redis.url), args[0]).toEqual({ code: 0, err: '', out: expect.stringMatching(out) })
  for (const [args, out] of AT_SOURCE)
    expect(await weir(...args, '--source', redis.url), args[0]).toEqual({ code: 0, err: '', out: expect.stringMatching(out) })
})

it('each command that goes nowhere ends by itself, and all commands are tried here', { timeout: 120_000 }, async () => {
  for (const [args, out] of LOCAL) expect(await weir(...args), args[0]).toEqual({ code: 0, err: '', out: expect.stringMatching(out) })
  const listed = [...(await weir('--help')).out.matchAll(/^ {2}([a-z]+)\b/gm)].map(([, name]) => name)
  const tried = [...AT_STORE, ...AT_SOURCE, ...LOCAL].map(([[name]]) => name)
  expect(listed.filter((name) => name !== 'help').toSorted()).toEqual(tried.toSorted())
})

it.each([
  ['refuses connections', /ECONNREFUSED/, () => ['redis://127.0.0.1:1', 'postgres://127.0.0.1:1/weir', 'http://127.0.0.1:1']],
  [
    'hangs',
    /no answer within \d+ ms|did not answer within \d+ ms/,
    () => ['redis:', 'postgres:', 'http:'].map((scheme) => `${scheme}//127.0.0.1:${(hung.address() as AddressInfo).port}`),
  ],
] as const)('each command ends by itself when its store %s, and says so', { timeout: 120_000 }, async (_, why, addresses) => {
  const [redisUrl = '', ...others] = addresses()
  const commands = [
    ...AT_STORE.map(([args]) => [...args, '--store', redisUrl]),
    ...AT_SOURCE.map(([args]) => [...args, '--source', redisUrl]),
    ...others.map((url) => ['usage', 'ann', ...KEYS, '--store', url]),
  ]
  const ended = await Promise.all(commands.map((args) => weir(...args)))
  for (const [i, one] of ended.entries())
    expect(one, commands[i]?.join(' ')).toEqual({ code: 2, out: '', err: expect.stringMatching(new RegExp(`^weir: .*(${why.source})`)) })
})

it('a command that is called in a wrong way ends at once, and says why', { timeout: 120_000 }, async () => {
  const ended = await Promise.all(WRONG.map(([args]) => weir(...args)))
  for (const [i, one] of ended.entries())
    expect(one, WRONG[i]?.[0].join(' ')).toEqual({ code: 2, out: '', err: expect.stringMatching(WRONG[i]?.[1] as RegExp) })
})
