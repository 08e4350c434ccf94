import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type TokenUsage, type UsageProvider, usageOf } from '../../src/budget/token-usage.ts'

/** The use after each value that changes it. */
function read(provider: UsageProvider, values: readonly unknown[]): TokenUsage[] {
  const seen: TokenUsage[] = []
  const call = {}
  const reader = usageOf(provider, (usage, of: object) => {
    expect(of).toBe(call)
    seen.push(usage)
    return { tokens: usage.total }
  })
  for (const value of values) reader(value, call)
  return seen
}

const CACHED = { input: 2006, output: 300, cacheRead: 1920, cacheWrite: 0, total: 2306 }

test.each<[string, UsageProvider, readonly unknown[], readonly TokenUsage[]]>([
  [
    'Chat Completions',
    'openai',
    [{ usage: { prompt_tokens: 2006, completion_tokens: 300, total_tokens: 2306, prompt_tokens_details: { cached_tokens: 1920 } } }],
    [CACHED],
  ],
  [
    'a stream of Chat Completions',
    'openai',
    [
      { choices: [{ delta: {} }], usage: null },
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 12, total_tokens: 21 } },
    ],
    [{ input: 9, output: 12, cacheRead: 0, cacheWrite: 0, total: 21 }],
  ],
  [
    'Embeddings',
    'openai',
    [{ usage: { prompt_tokens: 8, total_tokens: 8 } }],
    [{ input: 8, output: 0, cacheRead: 0, cacheWrite: 0, total: 8 }],
  ],
  [
    'a compatible server that counts reasoning in the total only',
    'openai',
    [{ usage: { completion_tokens: 102, prompt_tokens: 758, total_tokens: 1725 } }],
    [{ input: 758, output: 967, cacheRead: 0, cacheWrite: 0, total: 1725 }],
  ],
  [
    'Responses',
    'openai',
    [{ usage: { input_tokens: 2006, input_tokens_details: { cached_tokens: 1920 }, output_tokens: 300, total_tokens: 2306 } }],
    [CACHED],
  ],
  [
    'a stream of Responses',
    'openai',
    [
      { type: 'response.created', response: { usage: null } },
      { type: 'response.output_text.delta', delta: 'x' },
      {
        type: 'response.completed',
        response: { usage: { input_tokens: 2006, input_tokens_details: { cached_tokens: 1920 }, output_tokens: 300, total_tokens: 2306 } },
      },
    ],
    [CACHED],
  ],
  [
    'Messages',
    'anthropic',
    [{ usage: { input_tokens: 10, cache_creation_input_tokens: 200, cache_read_input_tokens: 3000, output_tokens: 5 } }],
    [{ input: 3210, output: 5, cacheRead: 3000, cacheWrite: 200, total: 3215 }],
  ],
  [
    'a stream of Messages, whose first output token is no use yet',
    'anthropic',
    [
      {
        type: 'message_start',
        message: { usage: { input_tokens: 25, cache_creation_input_tokens: 4, cache_read_input_tokens: 6, output_tokens: 1 } },
      },
      { type: 'content_block_delta', delta: { text: 'x' } },
      { type: 'message_delta', usage: { output_tokens: 15 } },
      { type: 'message_delta', usage: { output_tokens: 40 } },
      { type: 'message_stop' },
    ],
    [
      { input: 35, output: 15, cacheRead: 6, cacheWrite: 4, total: 50 },
      { input: 35, output: 40, cacheRead: 6, cacheWrite: 4, total: 75 },
    ],
  ],
  [
    'generateContent',
    'gemini',
    [
      {
        usageMetadata: {
          promptTokenCount: 100,
          toolUsePromptTokenCount: 7,
          cachedContentTokenCount: 60,
          candidatesTokenCount: 20,
          thoughtsTokenCount: 30,
          totalTokenCount: 157,
        },
      },
    ],
    [{ input: 107, output: 50, cacheRead: 60, cacheWrite: 0, total: 157 }],
  ],
  [
    'streamGenerateContent, whose first total is the prompt',
    'gemini',
    [
      { usageMetadata: { promptTokenCount: 4, totalTokenCount: 4 } },
      { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 3, totalTokenCount: 7 } },
      { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 9, totalTokenCount: 13 } },
    ],
    [
      { input: 4, output: 3, cacheRead: 0, cacheWrite: 0, total: 7 },
      { input: 4, output: 9, cacheRead: 0, cacheWrite: 0, total: 13 },
    ],
  ],
  [
    'streamGenerateContent as one list',
    'gemini',
    [
      [
        { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 3 } },
        { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 9 } },
      ],
    ],
    [{ input: 4, output: 9, cacheRead: 0, cacheWrite: 0, total: 13 }],
  ],
])('%s', (_, provider, values, expected) => {
  expect(read(provider, values)).toEqual(expected)
})

test('Bedrock counts cache writes and five units for each output token, and cache reads not at all', () => {
  const reader = usageOf('anthropic', ({ input, cacheRead, output }, _: object) => ({ tokens: input - cacheRead + 5 * output }))
  const usage = { input_tokens: 5, cache_creation_input_tokens: 2000, cache_read_input_tokens: 9000, output_tokens: 200 }
  expect(reader({ usage }, {})).toEqual({ tokens: 3005 })
  expect(reader({ usage: { input_tokens: 10, output_tokens: 750 } }, {})).toEqual({ tokens: 3760 })
  expect(reader({ usage: { input_tokens: 6, output_tokens: 12 } }, {})).toEqual({ tokens: 66 })
})

test('responses are read separately, and a rejected one used no tokens', () => {
  const reader = usageOf('openai', ({ total }) => ({ tokens: total }))
  const [first, second] = [new Response(), new Response()]
  expect(reader({ usage: { total_tokens: 50 } }, first)).toEqual({ tokens: 50 })
  expect(reader({ usage: { total_tokens: 20 } }, second)).toEqual({ tokens: 20 })
  expect(reader({ usage: { total_tokens: 20 } }, first)).toBeUndefined()
  expect(reader(undefined, new Response())).toBeUndefined()
  expect(reader(undefined, new Response(null, { status: 429 }))).toEqual({ tokens: 0 })
})

test('values that are no counts are ignored, whatever a server sends', () => {
  const bad = fc.oneof(fc.constantFrom('9', -1, 1.5, 2e9, null, true, [], {}, Number.NaN), fc.nat())
  const names = ['usage', 'message', 'response', 'usageMetadata', 'prompt_tokens', 'total_tokens', 'output_tokens', 'candidatesTokenCount']
  const object = fc.dictionary(
    fc.constantFrom(...names),
    fc.oneof(bad, fc.dictionary(fc.constantFrom(...names), fc.oneof(bad, fc.dictionary(fc.constantFrom(...names), bad)))),
  )
  fc.assert(
    fc.property(
      fc.constantFrom<UsageProvider>('openai', 'anthropic', 'gemini'),
      fc.array(fc.oneof(object, bad), { maxLength: 4 }),
      (provider, values) => {
        for (const usage of read(provider, values))
          for (const count of Object.values(usage)) expect(Number.isInteger(count) && count >= 0 && count <= 4e9).toBe(true)
      },
    ),
    { numRuns: 500 },
  )
  for (const count of ['9', -1, 1.5, 2e9, null, true, [], {}])
    expect(read('openai', [{ usage: { prompt_tokens: count, completion_tokens: count, total_tokens: count } }])).toEqual([])
})

test.each([
  ['ollama', () => ({}), 'Option "provider"'],
  ['openai', 5, 'Option "costs"'],
])('bad arguments are rejected: %j', (provider, costs, message) => {
  expect(() => usageOf(provider as never, costs as never)).toThrow(message)
})
