import { afterEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { type Program, startProgram } from './program.ts'

const TIMEOUT = { timeout: 180_000 }
let program: Program
afterEach(() => program?.stop('SIGKILL'))

/** Starts an example so that no interval ends within the test, because more requests would be allowed then. */
async function startWithinAnInterval(example: string): Promise<string> {
  program = await startProgram(example)
  const left = 10_000 - (Date.now() % 10_000)
  if (left < 3_000) await new Promise((resolve) => setTimeout(resolve, left + 50))
  return program.url
}

/** The first message of a WebSocket, or the response that rejected it. */
function greetingOf(url: string): Promise<string | { status: number | undefined; body: string; limit: unknown }> {
  const socket = new WebSocket(url.replace('http', 'ws'))
  return new Promise((resolve, reject) => {
    socket.on('error', reject)
    socket.once('message', (data) => {
      socket.terminate()
      resolve(String(data))
    })
    socket.once('unexpected-response', async (_request, response) => {
      let body = ''
      for await (const piece of response) body += String(piece)
      resolve({ status: response.statusCode, body, limit: response.headers['ratelimit'] })
    })
  })
}

describe('the node-http example', () => {
  it('counts and rejects requests to upgrade with the others', TIMEOUT, async () => {
    const url = await startWithinAnInterval('node-http')
    expect((await fetch(url)).status).toBe(200)
    expect(await greetingOf(url)).toBe('Hello from a WebSocket')
    expect(await greetingOf(url)).toBe('Hello from a WebSocket')
    const rejected = await greetingOf(url)
    expect(rejected).toMatchObject({ status: 429, limit: expect.stringMatching(/^"default";r=0;t=\d+$/) })
    expect(rejected).toMatchObject({ body: expect.stringContaining('quota-exceeded') })
    expect((await fetch(url)).status).toBe(429)
  })
})
