import { request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Request, RequestHandler, Response } from 'express'
import { describe, expect, test, vi } from 'vitest'
import { concurrency, handlerStarts, throttle } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const PATIENT = { timeout: 10_000, interval: 5 }

/** A handler that reports its end, as the guide to concurrency shows. */
function reporting(handler: (req: Request, res: Response) => Promise<void>): RequestHandler {
  return (req, res, next) => {
    const ended = handlerStarts(res)
    if (ended !== null) handler(req, res).catch(next).finally(ended)
  }
}

describe.each(FRAMEWORKS)('%s', (_name, express) => {
  test('a handler that reports its end keeps its slot until then, and one without slots reports nothing', async () => {
    const app = express()
    const limit = throttle({ key: 'all', limit: 1, algorithm: concurrency(), coordination: 'local' })
    let closed = false
    let go = () => {}
    const gone = new Promise<void>((resolve) => (go = resolve))
    const handler = reporting(async (_req, res) => {
      res.once('close', () => (closed = true))
      await gone
      res.send('done')
    })
    app.get('/', limit, handler)
    app.get('/unlimited', handler)
    const server: Server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const free = () => limit.throttler.peek('all').remaining
    try {
      const client = request({ host: '127.0.0.1', port, agent: false })
        .on('error', () => {})
        .end()
      await vi.waitFor(() => expect(free()).toBe(0), PATIENT)
      client.destroy()
      await vi.waitFor(() => expect(closed).toBe(true), PATIENT)
      expect(free()).toBe(0)
      go()
      await vi.waitFor(() => expect(free()).toBe(1), PATIENT)
      expect((await fetch(`http://127.0.0.1:${port}/unlimited`)).status).toBe(200)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})
