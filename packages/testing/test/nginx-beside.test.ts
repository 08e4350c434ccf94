import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, get, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { leakyBucket } from '@weir/core'
import { createGuard, nodeReader } from '@weir/core/adapter'
import { address, header } from '@weir/core/http'
import { SEED } from '@weir/tooling/seed'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SeededRandom } from '../src/index.ts'

/** Units per second, `burst`, and the part of it that passes immediately. */
const SHAPES = [
  { limit: 10, burst: 5, immediate: 0 },
  { limit: 10, burst: 5, immediate: 5 },
  { limit: 20, burst: 6, immediate: 2 },
  { limit: 50, burst: 3, immediate: 1 },
] as const
/** nginx counts whole milliseconds, and reads one clock a moment before the other. */
const CLOCK = 3

const nginx = found()
if (nginx === undefined) console.warn('There is no nginx here (apt-get install nginx), so leakyBucket() is not held against it.')

function found(): string | undefined {
  for (const path of ['nginx', '/usr/sbin/nginx']) {
    try {
      execFileSync(path, ['-v'], { stdio: 'ignore' })
      return path
    } catch {}
  }
  return undefined
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** A service that returns the keys of a request, by its address and by the header that nginx sets. */
function keysService(warnings: string[]): Server {
  const limit = { limit: 100, interval: '1h', coordination: 'local' } as const
  const byAddress = createGuard<IncomingMessage, []>({ ...limit, key: 'ip' }, nodeReader)
  const byHeader = createGuard<IncomingMessage, []>({ ...limit, key: address(header('x-real-ip')) }, nodeReader)
  for (const { throttler } of [byAddress, byHeader]) throttler.on('warning', ({ error }) => warnings.push(error.message))
  return createHttpServer(async (request, response) => {
    response.end(`${(await byAddress.check(request))?.key} ${(await byHeader.check(request))?.key}`)
  })
}

describe.skipIf(nginx === undefined)('beside nginx', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-nginx-'))
  let port = 0
  let child: ChildProcess | undefined
  const warnings: { readonly tcp: string[]; readonly unix: string[] } = { tcp: [], unix: [] }
  const services = { tcp: keysService(warnings.tcp), unix: keysService(warnings.unix) }

  beforeAll(async () => {
    port = await freePort()
    await Promise.all([
      once(services.tcp.listen(0, '127.0.0.1'), 'listening'),
      once(services.unix.listen(join(folder, 'behind')), 'listening'),
    ])
    const zones = SHAPES.map(({ limit }, at) => `limit_req_zone $arg_key zone=z${at}:1m rate=${limit}r/s;`)
    const places = SHAPES.map(({ burst, immediate }, at) => {
      const waits = immediate === burst ? 'nodelay' : immediate > 0 ? `delay=${immediate}` : ''
      return `location = /${at} { limit_req zone=z${at} burst=${burst} ${waits}; limit_req_status 429; try_files /none @done; }`
    })
    writeFileSync(
      join(folder, 'nginx.conf'),
      `daemon off; master_process off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log info;
      events {}
      http {
        client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b; fastcgi_temp_path ${folder}/c; uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
        log_format told '$arg_key $arg_row $limit_req_status $msec $request_time';
        access_log ${folder}/access.log told;
        limit_req_log_level notice;
        ${zones.join('\n')}
        server {
          listen 127.0.0.1:${port}; ${places.join('\n')} location @done { return 204; }
          proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
          proxy_set_header X-Real-IP $remote_addr;
          location = /tcp { proxy_pass http://127.0.0.1:${(services.tcp.address() as AddressInfo).port}; }
          location = /unix { proxy_pass http://unix:${folder}/behind:/; }
        }
      }`,
    )
    child = spawn(nginx as string, ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' })
    for (let tries = 0; (await ask('/none')) === 0; tries++) {
      if (tries > 500) throw new Error(`nginx did not start: ${readFileSync(join(folder, 'error.log'), 'utf8')}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }, 30_000)

  afterAll(async () => {
    const ended = new Promise((resolve) => child?.once('exit', resolve))
    if (child?.kill() === true) await ended
    for (const service of Object.values(services)) service.close()
    rmSync(folder, { recursive: true })
  })

  function ask(path: string): Promise<number> {
    return new Promise((resolve) => {
      get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      }).on('error', () => resolve(0))
    })
  }

  test.each([
    ['tcp', '127.0.0.1', /^A request from 127\.0\.0\.1 has the header "x-forwarded-for", but the framework ignores it/],
    ['unix', 'unknown', /^A request came over a Unix socket, which has no address\. All such requests share the key "unknown"/],
  ] as const)(
    'behind it over %s, clients share an address with a warning, and its own header tells them apart',
    async (way, shared, warned) => {
      const keysOf = async (localAddress: string) => {
        const headers = { 'X-Forwarded-For': '203.0.113.7', 'X-Real-IP': '203.0.113.7' }
        const sent = get({ host: '127.0.0.1', port, path: `/${way}`, agent: false, localAddress, headers })
        const [response] = (await once(sent, 'response')) as [IncomingMessage]
        return (await response.setEncoding('utf8').toArray()).join('')
      }
      const clients = Array.from({ length: 8 }, (_, at) => `127.0.0.${at + 2}`)
      expect(await Promise.all(clients.map(keysOf))).toEqual(clients.map((client) => `${shared} ${client}`))
      expect(warnings[way]).toEqual([expect.stringMatching(warned)])
      expect(warnings[way][0]).toContain('key: address(header("x-real-ip"))')
    },
  )

  type Row = [key: string, row: string, status: string, ended: string, took: string]

  /** Reads nginx's log. nginx writes a line after its response, so the last lines may come later than the responses. */
  async function logged(at: number, count: number): Promise<Row[]> {
    for (;;) {
      const lines = readFileSync(join(folder, 'access.log'), 'utf8').split('\n').slice(0, -1)
      const rows = lines.filter((line) => line.startsWith(`${at}-`)).map((line) => line.split(' ') as Row)
      if (rows.length >= count) return rows
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  test.each(SHAPES.map((shape, at) => ({ ...shape, at })))(
    'leakyBucket decides as its limit_req: $limit a second, burst $burst, $immediate at once',
    async ({ limit, burst, immediate, at }) => {
      const random = new SeededRandom(`${SEED}/nginx/${at}`)
      const keys = Array.from({ length: 12 }, (_, key) => `${at}-${key}`)
      await Promise.all(
        keys.map(async (key) => {
          const asked: Promise<number>[] = []
          for (let row = 0; row < 30; row++) {
            asked.push(ask(`/${at}?key=${key}&row=${row}`))
            if (random.next() < 0.5) await new Promise((resolve) => setTimeout(resolve, random.next() * (3000 / limit)))
          }
          for (const status of await Promise.all(asked)) expect([204, 429]).toContain(status)
        }),
      )
      const { step } = leakyBucket({ burst, immediate })
      const parameters = step?.parameters({ interval: 1000 } as never) ?? []
      const rows = await logged(at, keys.length * 30)
      let compared = 0
      for (const key of keys) {
        // Rows are sorted by arrival, not by end. Rows of one millisecond are interchangeable.
        const mine = rows
          .filter(([of]) => of === key)
          .map(([, , status, ended, took]) => ({
            status,
            came: Math.round(1000 * (Number(ended) - Number(took))),
            took: 1000 * Number(took),
          }))
          .sort((a, b) => a.came - b.came || ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || a.took - b.took)
        const state: number[] = []
        for (const { status, came, took } of mine) {
          const excess = (units: number) => units - (step?.take(state, came, 0, limit, parameters).remaining ?? 0) + burst
          // A difference of about a millisecond can't be measured, so nginx's decision counts.
          const before = excess(1)
          if ([burst, immediate, 0].some((bound) => Math.abs(before - bound) < (CLOCK * limit) / 1000)) {
            if (status !== 'REJECTED') step?.add(state, came, 1, limit, parameters)
            continue
          }
          const verdict = step?.take(state, came, 1, limit, parameters)
          const told = verdict?.allowed !== true ? 'REJECTED' : verdict.delayMs > 0 ? 'DELAYED' : 'PASSED'
          expect(told, `FC_SEED=${SEED}, ${key} after ${compared} rows: excess ${before}`).toBe(status)
          if (told === 'DELAYED') expect(took).toBeGreaterThan((verdict?.delayMs ?? 0) - CLOCK - 1)
          compared++
        }
      }
      expect(compared).toBeGreaterThan(keys.length * 5)
    },
    60_000,
  )
})

const ORDER = ['PASSED', 'DELAYED', 'REJECTED']
