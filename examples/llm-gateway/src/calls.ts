import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Decision } from '@weir/core'
import { EventSourceParserStream } from 'eventsource-parser/stream'

/** The tenants by their API keys. A real gateway reads them from its database. */
const TENANTS: ReadonlyMap<string, string> = new Map([
  ['key-of-ann', 'ann'],
  ['key-of-bob', 'bob'],
])
/** The most output tokens of a call without a maximum. */
const USUAL_MOST = 1_000
/** The most output tokens of the model. */
const MOST = 64_000
/** The longest body in bytes. */
const LONGEST_BODY = 1_000_000

/** A tenant's call of a model. */
export interface ModelCall {
  /** The body for the provider. */
  readonly body: string
  /** Estimated tokens of the prompt. */
  readonly input: number
  /** The most tokens of the output. */
  readonly most: number
}

/** A request that the gateway can't forward. */
class BadRequest extends Error {
  override readonly name: string = 'BadRequest'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Micro-dollars of tokens: 3 dollars for a million of the prompt, and 15 dollars for a million of the output. */
export function priceOf(input: number, output: number): number {
  return 3 * input + 15 * output
}

/** @throws BadRequest without a valid API key */
export function tenantOf({ headers: { authorization } }: IncomingMessage): string {
  const tenant = TENANTS.get(/^Bearer (.+)$/.exec(authorization ?? '')?.[1] ?? '')
  if (tenant === undefined) throw new BadRequest(401, 'The API key is not valid.')
  return tenant
}

/** @throws BadRequest for a body that is too long or not a chat */
export async function modelCallOf(request: IncomingMessage): Promise<ModelCall> {
  const given = parsed(await textOf(request))
  if (!Array.isArray(given['messages'])) throw new BadRequest(400, '"messages" must be a list.')
  const { max_tokens, max_completion_tokens, ...others } = given
  // A body may have both names of the maximum. The larger one counts, so that a small one can't hide it.
  const limits = [max_tokens, max_completion_tokens].filter((limit) => limit !== undefined)
  const most = limits.length === 0 ? USUAL_MOST : Math.max(...limits.map(Number))
  if (!(Number.isInteger(most) && most >= 1 && most <= MOST)) throw new BadRequest(400, `"max_tokens" must be 1 to ${MOST}.`)
  // About three characters per token. The real number is settled later.
  const input = Math.ceil(JSON.stringify(given['messages']).length / 3)
  // Providers report the usage of a stream only on request.
  const body = { ...others, max_completion_tokens: most, stream: true, stream_options: { include_usage: true } }
  return { body: JSON.stringify(body), input, most }
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text))
  } catch {
    throw new BadRequest(400, 'The body must be JSON.')
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let length = 0
  // A client that is still sending would not read a response, so the rest is read and dropped.
  for await (const part of request as AsyncIterable<Buffer>) if ((length += part.length) <= LONGEST_BODY) parts.push(part)
  if (length > LONGEST_BODY) throw new BadRequest(413, `The body must have at most ${LONGEST_BODY} bytes.`)
  return Buffer.concat(parts).toString()
}

/** The events of a stream, each with its text and its JSON value. */
export async function* eventsOf(stream: Response): AsyncGenerator<{ readonly text: string; readonly value: unknown }> {
  const events = stream.body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
  for await (const { data } of events ?? []) yield { text: `data: ${data}\n\n`, value: data === '[DONE]' ? undefined : JSON.parse(data) }
}

/** Rejects a call. */
export function reject(response: ServerResponse, { policy, retryAfterMs }: Decision): void {
  // A call above the limit never fits, and has no time after which it would.
  if (retryAfterMs < Number.POSITIVE_INFINITY) response.setHeader('Retry-After', Math.ceil(retryAfterMs / 1000))
  answer(response, 429, { error: { code: 'rate_limit_exceeded', message: `The limit of ${policy?.name} is reached.` } })
}

/** Answers a request that failed. */
export function fail(response: ServerResponse, error: unknown): void {
  // The client left, or the provider failed in the middle of a stream.
  if (response.headersSent) response.destroy()
  else if (error instanceof BadRequest) answer(response, error.status, { error: { message: error.message } })
  else answer(response, 500)
}

export function answer(response: ServerResponse, status: number, body: unknown = {}): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

export function listen(server: Server): void {
  server.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
    console.log(`The gateway listens on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  })
}
