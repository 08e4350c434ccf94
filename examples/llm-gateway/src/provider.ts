import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

/*
 * A fake provider of language models. It streams one token every `PACE_MS` in the format of OpenAI's chat completions, until
 * `max_completion_tokens` or `TOKENS` is reached. The usage follows in an event of its own, if the request has
 * `stream_options: { include_usage: true }`.
 */

const TOKENS = Number(process.env['TOKENS'] ?? 40)
const PACE_MS = Number(process.env['PACE_MS'] ?? 50)
const WORDS = ['A', ' weir', ' keeps', ' the', ' water', ' level', ' steady', '.', ' ']

const server = createServer(async (request, response) => {
  const body = await bodyOf(request)
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  const send = (event: object): unknown => response.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', ...event })}\n\n`)
  const length = Math.min(body.max_completion_tokens ?? TOKENS, TOKENS)
  for (let token = 0; token < length && !response.destroyed; token++) {
    send({ choices: [{ index: 0, delta: { content: WORDS[token % WORDS.length] } }], usage: null })
    await sleep(PACE_MS)
  }
  const prompt_tokens = Math.ceil((body.messages?.map(({ content }) => content).join(' ') ?? '').length / 4)
  const usage = { prompt_tokens, completion_tokens: length, total_tokens: prompt_tokens + length }
  if (body.stream_options?.include_usage) send({ choices: [], usage })
  response.end('data: [DONE]\n\n')
})

interface Body {
  readonly messages?: readonly { readonly content: string }[]
  readonly max_completion_tokens?: number
  readonly stream_options?: { readonly include_usage?: boolean }
}

async function bodyOf(request: IncomingMessage): Promise<Body> {
  try {
    return JSON.parse(await text(request))
  } catch {
    return {}
  }
}

server.listen(Number(process.env['PORT'] ?? 4000), '127.0.0.1', () => {
  console.log(`The provider listens on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
