import type { Costs } from '../decide/costs.ts'
import { oneOf } from '../options/one-of.ts'
import { invalidOption } from '../report/errors.ts'

/** Tokens that a call of a language model has used. */
export interface TokenUsage {
  /** All tokens of the prompt, with those from a cache and of tools. */
  readonly input: number
  /** All generated tokens, with those of reasoning. */
  readonly output: number
  /** Tokens of the input that were read from a cache. */
  readonly cacheRead: number
  /** Tokens of the input that were written to a cache. */
  readonly cacheWrite: number
  /** Input and output. */
  readonly total: number
}

/**
 * Reads the use of a call.
 *
 * @param value a parsed JSON value of the response. Undefined when the response has arrived, before its body is read
 * @param response the response
 * @returns total units by policy name, of which the largest count. Undefined if the value contains none
 */
export type UsageReader<Name extends string = string, Call extends object = Response> = (
  value: unknown,
  response: Call,
) => Costs<Name> | undefined

/** The form of a provider's responses. */
export type UsageProvider = 'openai' | 'anthropic' | 'gemini'

type Field = 'input' | 'output' | 'cacheRead' | 'cacheWrite' | 'total'
/** Paths of counts that add up. */
type Sum = readonly string[]
/** For each field the places that may contain it. The largest counts. */
type Shape = Readonly<Record<Field, readonly Sum[]>>

/**
 * The places of the counts, in whole responses and in the events of streams. A use without an output or a total is incomplete, and doesn't
 * count yet. Otherwise a client could end a stream early to pay for less than it has received.
 */
const SHAPES: Readonly<Record<UsageProvider, Shape>> = {
  // Chat Completions, Embeddings and compatible servers. Responses, whose streams contain them in `response.completed`.
  openai: {
    input: [['usage.prompt_tokens'], ['usage.input_tokens'], ['response.usage.input_tokens']],
    output: [['usage.completion_tokens'], ['usage.output_tokens'], ['response.usage.output_tokens']],
    cacheRead: [
      ['usage.prompt_tokens_details.cached_tokens'],
      ['usage.input_tokens_details.cached_tokens'],
      ['response.usage.input_tokens_details.cached_tokens'],
    ],
    cacheWrite: [
      ['usage.prompt_tokens_details.cache_write_tokens'],
      ['usage.input_tokens_details.cache_write_tokens'],
      ['response.usage.input_tokens_details.cache_write_tokens'],
    ],
    total: [['usage.total_tokens'], ['response.usage.total_tokens']],
  },
  // Messages. Streams have the input in `message_start`, with a first output token, and the totals in `message_delta`.
  anthropic: {
    input: [
      ['usage.input_tokens', 'usage.cache_read_input_tokens', 'usage.cache_creation_input_tokens'],
      ['message.usage.input_tokens', 'message.usage.cache_read_input_tokens', 'message.usage.cache_creation_input_tokens'],
    ],
    output: [['usage.output_tokens']],
    cacheRead: [['usage.cache_read_input_tokens'], ['message.usage.cache_read_input_tokens']],
    cacheWrite: [['usage.cache_creation_input_tokens'], ['message.usage.cache_creation_input_tokens']],
    total: [],
  },
  // generateContent, and each event of streamGenerateContent. Its first events may have a total of the prompt alone.
  gemini: {
    input: [['usageMetadata.promptTokenCount', 'usageMetadata.toolUsePromptTokenCount']],
    output: [['usageMetadata.candidatesTokenCount', 'usageMetadata.thoughtsTokenCount']],
    cacheRead: [['usageMetadata.cachedContentTokenCount']],
    cacheWrite: [],
    total: [],
  },
}

const FIELDS: readonly Field[] = ['input', 'output', 'cacheRead', 'cacheWrite', 'total']
const NONE: TokenUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
/** Larger counts are ignored, because no call uses as many tokens. */
const MOST_TOKENS = 1_000_000_000

/**
 * Reads the tokens that a provider reports, in a JSON body or in the events of a stream, for `usage` of `limitedFetch` and for loops over
 * the events of an SDK. Values that are no counts are ignored.
 *
 * A stream of Chat Completions contains its use only with `stream_options: { include_usage: true }`.
 *
 * @param provider the form of the responses. Many other providers use the form `'openai'`
 * @param costs returns the units by policy name. Called for each value that changes the use, and with zeros for a response of status 400
 * and above, because providers charge no tokens for these. Its second parameter is the response
 * @returns a function of a JSON value and its response. Values of one response, or of any other object, are combined
 * @throws WeirError `WEIR_INVALID_OPTION`
 * @example
 * usageOf('openai', ({ input, output, total }) => ({ tokens: total, usd: 3 * input + 15 * output }))
 * @see `@weir/core/docs/guides/budgets.md`
 */
export function usageOf<Name extends string, Call extends object = Response>(
  provider: UsageProvider,
  costs: (usage: TokenUsage, response: Call) => Costs<Name>,
): UsageReader<Name, Call> {
  const shape = SHAPES[oneOf('provider', provider, ['openai', 'anthropic', 'gemini'])]
  if (typeof costs !== 'function') throw invalidOption('costs', costs, 'a function such as ({ total }) => ({ tokens: total })')
  const places = FIELDS.map((field) => shape[field].map((sum) => sum.map((path) => path.split('.'))))
  /** For each response the largest count of each field. */
  const known = new WeakMap<object, (number | undefined)[]>()
  return (value, response) => {
    const { status } = response as { readonly status?: unknown }
    if (value === undefined) return typeof status === 'number' && status >= 400 ? costs(NONE, response) : undefined
    let counts = known.get(response)
    if (counts === undefined) known.set(response, (counts = []))
    let changed = false
    // Gemini streams a list of responses unless `alt=sse` is set.
    for (const one of Array.isArray(value) ? value : [value]) {
      for (const [i, sums] of places.entries()) {
        for (const paths of sums) {
          const count = sumAt(one, paths)
          if (count === undefined || count <= (counts[i] ?? -1)) continue
          counts[i] = count
          changed = true
        }
      }
    }
    const [input = 0, output, cacheRead = 0, cacheWrite = 0, total] = counts
    if (!changed || (output === undefined && total === undefined)) return undefined
    // Some providers count reasoning in the total only.
    const generated = Math.max(output ?? 0, (total ?? 0) - input)
    return costs({ input, output: generated, cacheRead, cacheWrite, total: input + generated }, response)
  }
}

/** The sum of the counts. Undefined without any. */
function sumAt(value: unknown, paths: readonly (readonly string[])[]): number | undefined {
  let sum: number | undefined
  for (const path of paths) {
    let found = value
    for (const name of path) found = typeof found === 'object' && found !== null ? (found as Record<string, unknown>)[name] : undefined
    if (Number.isInteger(found) && (found as number) >= 0 && (found as number) <= MOST_TOKENS) sum = (sum ?? 0) + (found as number)
  }
  return sum
}
