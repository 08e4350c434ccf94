import { afterEach, describe, expect, it } from 'vitest'
import { type Program, startProgram } from './program.ts'

let program: Program | undefined
afterEach(() => program?.stop('SIGKILL'))

describe.each([
  ['express', 'Hello from Express\n'],
  ['fastify', 'Hello from Fastify\n'],
  ['koa', 'Hello from Koa\n'],
  ['hono', 'Hello from Hono\n'],
  ['nestjs', 'Hello from NestJS\n'],
  ['node-http', 'Hello from Node.js\n'],
])('the %s example', (example, greeting) => {
  it('answers three requests, rejects the fourth, and says why and until when', { timeout: 180_000 }, async () => {
    program = await startProgram(example)
    // The requests start within one interval, because all four would be allowed if an interval ended between them.
    const left = 10_000 - (Date.now() % 10_000)
    if (left < 2_000) await new Promise((resolve) => setTimeout(resolve, left + 50))
    for (const remaining of [2, 1, 0]) {
      const response = await fetch(program.url)
      expect(response.status).toBe(200)
      expect(await response.text()).toBe(greeting)
      expect(response.headers.get('ratelimit')).toMatch(new RegExp(`"default";r=${remaining}`))
      expect(response.headers.get('ratelimit-policy')).toMatch(/"default";q=3;w=10/)
    }
    const rejected = await fetch(program.url)
    expect(rejected.status).toBe(429)
    expect(rejected.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(await rejected.json()).toMatchObject({ status: 429, 'violated-policies': ['default'] })
  })
})

describe.each(['fastify', 'nestjs'])('the %s example', (example) => {
  it('never limits its health', { timeout: 180_000 }, async () => {
    program = await startProgram(example)
    for (let i = 0; i < 10; i++) expect((await fetch(`${program.url}/health`)).status).toBe(200)
  })
})
