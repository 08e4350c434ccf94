import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import { flood, requestText } from '../harness/wire.ts'

/** Longer than any key that is kept, and nearly as long as Node.js lets a request's head be. */
const LONG = 14_000
/** What a key may hold on to, however long the strings were that it came from. */
const MOST = 600
/** What a framework compiles and caches in a run, bytes. */
const COMPILED = 200_000
const SOURCES = ['header', 'query', 'segments', 'cookie'] as const
type Source = (typeof SOURCES)[number]

/** A key must not keep the request alive that it was cut out of. */
export const bytesPerKey = attack<{ readonly source: Source }>({
  name: 'bytes-per-key',
  targets: ADAPTERS,

  async victim({ target, args: { source } }) {
    const { header } = await import('@weir/core/http')
    const keys = { header: header('x-key'), query: 'route', segments: 'route', cookie: cookieOf }
    const options = { key: keys[source], limit: 1_000, interval: '1h' }
    const { port } = await serve(target as never, { options })
    const answer = async (): Promise<number> => {
      for (let i = 0; i < 4; i++) {
        globalThis.gc?.()
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      return process.memoryUsage().heapUsed
    }
    return { port, answer }
  },

  async run({ start, result, short }) {
    const count = short ? 1_000 : 2_000
    for (const source of short ? SOURCES.slice(0, 2) : SOURCES) {
      const victim = await start({ source })
      // What the frameworks compile and cache is there before.
      await flood(victim.port, short ? 150 : 300, (i) => request(source, `warm${i}`))
      const before = await victim.ask<number>('heap')
      await flood(victim.port, count, (i) => request(source, `long${i}`))
      const bytes = Math.max(0, (await victim.ask<number>('heap')) - before - COMPILED) / count
      result(`keys from a ${source} of ${LONG / 1000} KB`, bytes <= MOST, `${Math.round(bytes)} B a key, at most ${MOST}`)
      await victim.kill()
    }
  },
})

/** Digits would be folded into one route; letters are not. V8 keeps parts of 13 characters and more as slices. */
function request(source: Source, name: string): string {
  const word = `somewhere-${name.replace(/\d/g, (digit) => 'qrstuvwxyz'[Number(digit)] as string)}`
  switch (source) {
    case 'header':
      // Longer ones than this are no keys.
      return requestText('GET', '/', { 'x-key': `${word}${'k'.repeat(3_900)}`, 'x-other': 'k'.repeat(LONG - 4_000) })
    case 'query':
      return requestText('GET', `/${word}?${'k'.repeat(LONG)}`)
    case 'segments':
      return requestText('GET', `/${word}${'/of-a-path'.repeat(LONG / 10)}`)
    case 'cookie':
      return requestText('GET', '/', { cookie: `a=${'k'.repeat(LONG)}; session=${word}; b=c` })
  }
}

/** A function of the user's own, which cuts the key out of a longer string, as functions do. */
function cookieOf(request: { headers?: Record<string, string>; req?: { headers: Record<string, string> } }): string {
  const headers = request.headers ?? request.req?.headers ?? {}
  return /session=([^;]+)/.exec(headers['cookie'] ?? '')?.[1] ?? 'none'
}
