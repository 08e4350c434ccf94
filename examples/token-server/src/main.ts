import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BadAsk, readAsk } from './ask.ts'
import { Permits } from './permits.ts'

/** The longest body in bytes. */
const LONGEST_BODY = 4_096

const permits = new Permits(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379')

async function grant(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const decision = await permits.ask(readAsk(await bodyOf(request), permits.policies))
  const { allowed, remaining, resetAfterMs, retryAfterMs } = decision
  // A request for more permits than the limit never fits, so it gets no `Retry-After`.
  const again = Number.isFinite(retryAfterMs) ? retryAfterMs : null
  if (!allowed && again !== null) response.setHeader('Retry-After', Math.max(1, Math.ceil(again / 1000)))
  const storeDown = permits.health.state !== 'synced'
  answer(response, allowed ? 200 : 429, { granted: allowed, remaining, resetAfterMs, retryAfterMs: again, storeDown })
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    length += part.length
    if (length > LONGEST_BODY) throw new BadAsk(`The body must be no longer than ${LONGEST_BODY} bytes.`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    if (request.url === '/health' && request.method === 'GET') answer(response, 200, permits.health)
    else if (request.url !== '/permits') answer(response, 404, { error: 'There is POST /permits and GET /health.' })
    else if (request.method !== 'POST') answer(response.setHeader('Allow', 'POST'), 405, { error: 'Ask for permits with POST.' })
    else await grant(request, response)
  } catch (error) {
    // The rest of the body is not read, so the connection can't be used again.
    response.setHeader('Connection', 'close')
    if (error instanceof BadAsk) answer(response, 400, { error: error.message })
    else answer(response, 500, { error: 'This request could not be answered.' })
  }
}

await permits.start()
const server = createServer((request, response) => void serve(request, response))
server.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`Listening on http://127.0.0.1:${(server.address() as AddressInfo).port}/permits`)
})

process.once('SIGTERM', async () => {
  server.close()
  server.closeIdleConnections()
  await permits.close()
  process.exit(0)
})
