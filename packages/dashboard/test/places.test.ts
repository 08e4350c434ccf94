import { type ClientRequest, get, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { dashboard } from '../src/index.ts'
import { serve, throttlerFor } from './servers.ts'

const PLACES = 3

/** A requested stream. `status` is undefined until the answer. */
interface Asked {
  readonly request: ClientRequest
  status: number | undefined
  gone: boolean
}

/** A function for `authorize` that waits until the test answers each call. */
class Slow {
  readonly #waiting: (() => void)[] = []
  readonly authorize = (): Promise<boolean> => new Promise((resolve) => this.#waiting.push(() => resolve(true)))
  /** Answers one of the waiting calls. */
  answer(which: number): void {
    this.#waiting.splice(which % Math.max(1, this.#waiting.length), 1)[0]?.()
  }
  answerAll(): void {
    for (const answer of this.#waiting.splice(0)) answer()
  }
}

async function open() {
  const slow = new Slow()
  const throttler = throttlerFor()
  const handler = dashboard(throttler, { authorize: slow.authorize, maxClients: PLACES })
  onTestFinished(() => handler.close())
  const served: { open: number; most: number } = { open: 0, most: 0 }
  const { url } = await serve((request, response) => {
    const { writeHead } = response
    // Counts open streams independently of the dashboard.
    response.writeHead = ((...args: Parameters<typeof writeHead>) => {
      if (args[0] === 200) {
        served.open++
        served.most = Math.max(served.most, served.open)
        response.on('close', () => {
          served.open--
        })
      }
      return writeHead.apply(response, args)
    }) as typeof writeHead
    handler(request, response)
  })
  const ask = (): Asked => {
    const asked: Asked = { request: get(`${url}/weir/events`), status: undefined, gone: false }
    asked.request.on('response', (response) => {
      asked.status = response.statusCode
      response.on('error', () => {}).resume()
    })
    asked.request.on('error', () => {})
    asked.request.on('close', () => {
      asked.gone = true
    })
    return asked
  }
  /** Waits until the server has processed everything before. */
  const settle = async (): Promise<void> => {
    await (await fetch(`${url}/weir`, { redirect: 'manual' })).text()
  }
  return { slow, served, ask, settle }
}

const anyStep = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: 'ask' } as const) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('answer' as const), which: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('leave' as const), which: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'answer all' } as const) },
  { weight: 3, arbitrary: fc.constant({ kind: 'wait' } as const) },
)

test('no more streams are open than there are places, and every place comes back', { timeout: 180_000 }, async () => {
  const { slow, served, ask, settle } = await open()
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 10, maxLength: 40, size: 'max' }), async (steps) => {
      const all: Asked[] = []
      for (const step of steps) {
        if (step.kind === 'ask') all.push(ask())
        else if (step.kind === 'answer') slow.answer(step.which)
        else if (step.kind === 'answer all') slow.answerAll()
        else if (step.kind === 'leave') all[step.which % Math.max(1, all.length)]?.request.destroy()
        else await settle()
        expect(served.most).toBeLessThanOrEqual(PLACES)
      }
      // Every client that is still connected gets an answer.
      await vi.waitFor(
        () => {
          slow.answerAll()
          expect(all.every(({ status, gone }) => status !== undefined || gone)).toBe(true)
        },
        { timeout: 30_000, interval: 1 },
      )
      expect(served.most).toBeLessThanOrEqual(PLACES)
      const statuses = all.flatMap(({ status }) => status ?? [])
      expect(statuses.every((status) => status === 200 || status === 503)).toBe(true)
      for (const { request } of all) request.destroy()
      await vi.waitFor(() => expect(served.open).toBe(0), { timeout: 30_000, interval: 1 })
      // All places are free again, so exactly as many clients as before get a stream.
      const again = Array.from({ length: PLACES + 2 }, ask)
      await vi.waitFor(
        () => {
          slow.answerAll()
          expect(again.every(({ status }) => status !== undefined)).toBe(true)
        },
        { timeout: 30_000, interval: 1 },
      )
      expect(again.map(({ status }) => status).sort()).toEqual([...Array(PLACES).fill(200), 503, 503])
      for (const { request } of again) request.destroy()
      await vi.waitFor(() => expect(served.open).toBe(0), { timeout: 30_000, interval: 1 })
    }),
    { numRuns: 60 },
  )
})

test('one who reads nothing loses his place when his time is over, and nothing is written to him then', { timeout: 30_000 }, async () => {
  const failed = vi.fn()
  process.on('uncaughtException', failed)
  onTestFinished(() => void process.off('uncaughtException', failed))
  const handler = dashboard(throttlerFor(), { authorize: () => true, maxClients: 1 })
  onTestFinished(() => handler.close())
  let stuck: ServerResponse | undefined
  const { url, port } = await serve((request, response) => {
    if (stuck === undefined) {
      stuck = response
      // Simulates a full send buffer, so that no write completes.
      Object.assign(request.socket, { _write: () => {}, _writev: null })
    }
    handler(request, response)
  })
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  onTestFinished(() => void socket.destroy())
  socket.write('GET /weir/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await expect.poll(() => stuck?.headersSent).toBe(true)
  expect((await fetch(`${url}/weir/events`)).status).toBe(503)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 11 * 60_000 })
  onTestFinished(() => void vi.useRealTimers())
  await expect.poll(() => stuck?.destroyed, { timeout: 10_000 }).toBe(true)
  const response = await fetch(`${url}/weir/events`)
  expect(response.status).toBe(200)
  await response.body?.cancel()
  expect(failed).not.toHaveBeenCalled()
})

test('nothing is written after a dashboard was closed', async () => {
  const failed = vi.fn()
  process.on('uncaughtException', failed)
  onTestFinished(() => void process.off('uncaughtException', failed))
  const throttler = throttlerFor()
  const handler = dashboard(throttler, { authorize: () => true })
  const { url } = await serve(handler)
  const stream = await fetch(`${url}/weir/events`)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  throttler.block('a', '1h')
  handler.close()
  throttler.block('b', '1h')
  expect(await stream.text()).toContain('event: view')
  await vi.advanceTimersByTimeAsync(5_000)
  expect(failed).not.toHaveBeenCalled()
})

test('streams that a client has sent at once, behind one that goes on, leave their places when it goes away', async () => {
  const handler = dashboard(throttlerFor(), { authorize: () => true, maxClients: PLACES })
  onTestFinished(() => handler.close())
  const { url } = await serve(handler)
  const { port, pathname } = new URL(`${url}/events`)
  const socket = connect(Number(port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(PLACES))
  await new Promise((resolve) => socket.once('data', resolve))
  const status = async (): Promise<number> => {
    const aborter = new AbortController()
    const answer = await fetch(`${url}/events`, { signal: aborter.signal })
    aborter.abort()
    return answer.status
  }
  await vi.waitFor(async () => expect(await status()).toBe(503), { timeout: 5_000 })
  socket.destroy()
  const all = async () => expect(await Promise.all(Array.from({ length: PLACES }, status))).toEqual([200, 200, 200])
  await vi.waitFor(all, { timeout: 5_000 })
})
