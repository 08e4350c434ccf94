import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import { flood, requestText } from '../harness/wire.ts'

/** Characters of a long string: more than any stored key has, and close to the limit of Node.js for a request's head. */
const LONG = 14_000
/** The most bytes that a key may retain, even if it was cut from a long string. */
const MOST = 600
/**
 * The number of rounds of new keys. Each is measured separately, because compiled code and caches change some rounds by hundreds of KB in
 * either direction. Memory that keys retain appears in every round.
 */
const ROUNDS = 5
const SOURCES = ['header', 'query', 'segments', 'cookie'] as const
type Source = (typeof SOURCES)[number]

/** Sends keys within long strings. A key must not retain the request from which it was cut. */
export const bytesPerKey = attack<{ readonly source: Source }>({
  name: 'bytes-per-key',
  targets: ADAPTERS,

  async victim({ target, args: { source } }) {
    const { header } = await import('@weir/core/http')
    const keys = { header: header('x-key'), query: 'route', segments: 'route', cookie: cookieOf }
    const options = { key: keys[source], limit: 1_000, interval: '1h' }
    const { port } = await serve(target as never, { options })
    return { port, answer: settledHeap }
  },

  async run({ start, result, short }) {
    const count = short ? 1_000 : 2_000
    for (const source of short ? SOURCES.slice(0, 2) : SOURCES) {
      const victim = await start({ source })
      // The first round is not measured, because the process compiles code and fills caches in it.
      let before = 0
      const bytes: number[] = []
      for (let round = 0; round <= ROUNDS; round++) {
        await flood(victim.port, count, (i) => request(source, `round${round}-long${i}`))
        const after = await victim.ask<number>('heap')
        if (round > 0) bytes.push((after - before) / count)
        before = after
      }
      const median = bytes.sort((a, b) => a - b)[ROUNDS >> 1] as number
      result(`keys from a ${source} of ${LONG / 1000} KB`, median <= MOST, `${Math.round(median)} B a key, at most ${MOST}`)
      await victim.kill()
    }
  },
})

/** The bytes in use once garbage collection frees no more. */
async function settledHeap(): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let same = 0, turns = 0; same < 4 && turns < 40; turns++) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    globalThis.gc?.()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    const used = heapUsed + arrayBuffers
    same = used < least - 1_000 ? 0 : same + 1
    least = Math.min(least, used)
  }
  return least
}

/** A request whose key has letters only, because route keys fold digits. V8 keeps substrings of 13 characters and more as slices. */
function request(source: Source, name: string): string {
  const word = `somewhere-${name.replace(/\d/g, (digit) => 'qrstuvwxyz'[Number(digit)] as string)}`
  switch (source) {
    case 'header':
      // Longer values are not used as keys.
      return requestText('GET', '/', { 'x-key': `${word}${'k'.repeat(3_900)}`, 'x-other': 'k'.repeat(LONG - 4_000) })
    case 'query':
      return requestText('GET', `/${word}?${'k'.repeat(LONG)}`)
    case 'segments':
      return requestText('GET', `/${word}${'/of-a-path'.repeat(LONG / 10)}`)
    case 'cookie':
      return requestText('GET', '/', { cookie: `a=${'k'.repeat(LONG)}; session=${word}; b=c` })
  }
}

/** A user's key function, which typically cuts the key from a longer string. */
function cookieOf(request: { headers?: Record<string, string>; req?: { headers: Record<string, string> } }): string {
  const headers = request.headers ?? request.req?.headers ?? {}
  return /session=([^;]+)/.exec(headers['cookie'] ?? '')?.[1] ?? 'none'
}
