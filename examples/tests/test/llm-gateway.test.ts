import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type PrivateRedis, startRedis } from '../src/redis.ts'
import { type Program, startProgram } from './program.ts'

const TIMEOUT = { timeout: 180_000 }
/** Micro-dollars of a token of the prompt, and of the output. */
const [INPUT, OUTPUT] = [3, 15]
/** The most tokens of the model. */
const MOST = 64_000
const MESSAGES = [{ role: 'user', content: 'What does a weir do?' }]
/** The gateway's estimate, and the provider's count, of the tokens of the prompt. */
const ESTIMATE = Math.ceil(JSON.stringify(MESSAGES).length / 3)
const PROMPT = 5

const redis: PrivateRedis | undefined = await startRedis()
const started: Program[] = []
let gateways: Program[] = []

beforeAll(async () => {
  if (redis === undefined) return
  const start = async (...all: Parameters<typeof startProgram>): Promise<Program> => {
    const program = await startProgram(...all)
    started.push(program)
    return program
  }
  const provider = await start('llm-gateway', [], { TOKENS: '100', PACE_MS: '50' }, 'provider')
  // The ttl is longer than a whole stream, and the gateway sends its use to Redis every second.
  const env = { REDIS_URL: redis.url, PROVIDER: provider.url, TTL: '6s', DOLLARS: '1' }
  gateways = await Promise.all([1, 2].map(() => start('llm-gateway', [], env)))
  for (const { url } of gateways)
    await vi.waitFor(async () => expect(await usageOf(url, 'ann')).toMatchObject({ source: 'store' }), { timeout: 20_000 })
}, 180_000)
afterAll(async () => {
  await Promise.all(started.map((program) => program.stop('SIGKILL')))
  await redis?.stop()
})

const headersOf = (tenant: string) => ({ Authorization: `Bearer key-of-${tenant}` })

interface Usage {
  readonly used: number
  readonly source: string
}

/** Micro-dollars that a tenant has used. */
async function usageOf(url: string, tenant: string): Promise<Usage> {
  const list = (await (await fetch(url, { headers: headersOf(tenant) })).json()) as (Usage & { readonly policy: string })[]
  return list.find(({ policy }) => policy === 'usd') as Usage
}

const expectUsed = (url: string, tenant: string, used: (units: number) => void) =>
  vi.waitFor(async () => used((await usageOf(url, tenant)).used), { timeout: 30_000 })

function call(url: string, tenant: string, most: number, signal?: AbortSignal): Promise<Response> {
  const body = JSON.stringify({ messages: MESSAGES, max_tokens: most })
  return fetch(url, { method: 'POST', headers: headersOf(tenant), body, ...(signal && { signal }) })
}

/** Reads a stream, and calls `each` after each event with their number. Returns that number, even if the stream breaks. */
async function read(response: Response, each: (events: number) => void = () => {}): Promise<number> {
  const decoder = new TextDecoder()
  let [text, events] = ['', 0]
  try {
    for await (const part of response.body as AsyncIterable<Uint8Array>) {
      text += decoder.decode(part, { stream: true })
      const count = text.match(/^data: \{.*\n/gm)?.length ?? 0
      while (events < count) each(++events)
    }
  } catch {}
  return events
}

/** Expects the price of an estimated prompt and of whole tokens of the output, which it returns. */
function tokensOf(used: number): number {
  const tokens = (used - INPUT * ESTIMATE) / OUTPUT
  expect(Number.isInteger(tokens), `${used}`).toBe(true)
  return tokens
}

describe.skipIf(redis === undefined)('the gateway of language models', () => {
  it('charges a call by the usage that the provider reports, for both gateways', TIMEOUT, async () => {
    const [one, two] = gateways as [Program, Program]
    // The last event contains the usage.
    expect(await read(await call(one.url, 'ann', 3))).toBe(4)
    for (const { url } of [one, two]) await expectUsed(url, 'ann', (used) => expect(used).toBe(INPUT * PROMPT + OUTPUT * 3))
  })

  it('charges the tokens that were streamed if the client leaves', TIMEOUT, async () => {
    const [one, two] = gateways as [Program, Program]
    const before = (await usageOf(two.url, 'ann')).used
    const leaving = new AbortController()
    const events = await read(await call(one.url, 'ann', 100, leaving.signal), (count) => count === 5 && leaving.abort())
    await expectUsed(two.url, 'ann', (used) => {
      const tokens = tokensOf(used - before)
      expect(tokens).toBeGreaterThanOrEqual(events)
      expect(tokens).toBeLessThan(100)
    })
  })

  it('rejects a call that does not fit beside the open ones, and names the limit', TIMEOUT, async () => {
    const both = await Promise.all(gateways.map(({ url }) => call(url, 'bob', MOST)))
    const [open, rejected] = both.sort((a, b) => a.status - b.status) as [Response, Response]
    expect([open.status, rejected.status]).toEqual([200, 429])
    expect(await rejected.json()).toMatchObject({ error: { message: 'The limit of usd is reached.' } })
    await open.body?.cancel()
  })

  it('answers requests that it can not forward', TIMEOUT, async () => {
    const [{ url }] = gateways as [Program]
    const statusOf = async (body: unknown, key = 'key-of-ann') =>
      (await fetch(url, { method: 'POST', headers: { Authorization: `Bearer ${key}` }, body: JSON.stringify(body) })).status
    expect(await statusOf({ messages: MESSAGES }, 'toString')).toBe(401)
    expect(await statusOf({ messages: 'none' })).toBe(400)
    expect(await statusOf({ messages: MESSAGES, max_tokens: 1, max_completion_tokens: MOST + 1 })).toBe(400)
    expect(await statusOf('x'.repeat(1_000_001))).toBe(413)
  })

  // The last test, because it kills a gateway.
  it('gets the unused money of a killed gateway back once its calls have expired', TIMEOUT, async () => {
    const [one, two] = gateways as [Program, Program]
    const before = (await usageOf(two.url, 'ann')).used
    let killed: Promise<unknown> | undefined
    const events = await read(await call(one.url, 'ann', 100), (count) => {
      if (count === 40) killed = one.stop('SIGKILL')
    })
    await killed
    expect(events).toBeGreaterThanOrEqual(40)
    await expectUsed(two.url, 'ann', (used) => {
      const tokens = tokensOf(used - before)
      expect(tokens).toBeGreaterThan(0)
      expect(tokens).toBeLessThan(100)
    })
    expect((await call(two.url, 'ann', 1)).status).toBe(200)
  })
})
