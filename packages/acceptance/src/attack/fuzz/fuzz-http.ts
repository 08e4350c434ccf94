import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { mutatedBytes } from '../harness/mutate.ts'
import type { Random } from '../harness/random.ts'
import { serve } from '../harness/serve.ts'
import { requestText, Wire } from '../harness/wire.ts'

const LIMIT = 20
/** The most bytes of heap that a fuzz may leave behind: `maxKeys` keys in three policies, and compiled code. */
const MOST = 12e6

/** Sends bytes that are nearly requests. */
export const fuzzHttp = attack<null>({
  name: 'fuzz-http',
  targets: ADAPTERS,

  async victim({ target }) {
    const { header, paths } = await import('@weir/core/http')
    const policies = [
      { name: 'all', key: 'all', limit: LIMIT, interval: '1h' },
      { name: 'routes', key: 'route', limit: 1e9, interval: '1h' },
      { name: 'keys', key: ['ip', header('x-key'), header('cookie')], limit: 1e9, interval: '1h', match: paths('/api/:id', '/*rest') },
    ]
    const options = { policies, maxKeys: 2_000, skipFailedRequests: true, headers: ['draft-11', 'legacy'] }
    const { port } = await serve(target as never, { options })
    const answer = (): number => {
      globalThis.gc?.()
      return process.memoryUsage().heapUsed
    }
    return { port, answer }
  },

  async run({ start, result, random, time }) {
    const victim = await start(null, { heap: 128 })
    let allowed = 0
    let sent = 0
    let before = 0
    const errors: string[] = []
    const work = async (): Promise<void> => {
      const wire = new Wire(victim.port)
      for (const deadline = Date.now() + time; Date.now() < deadline && victim.up; sent++) {
        const bytes = request(random)
        const { status } = await wire.send(bytes, 100)
        if (status === 200) allowed++
        if (status >= 500 && status !== 501 && status !== 505) errors.push(`${status} ${JSON.stringify(bytes.toString('latin1'))}`)
        if (!victim.up) errors.push(`ended at ${JSON.stringify(bytes.toString('latin1'))}`)
        if (sent === 500) before = await victim.ask<number>('heap')
      }
      wire.close()
    }
    await Promise.all(Array.from({ length: 4 }, work))
    const grown = victim.up && before > 0 ? (await victim.ask<number>('heap')) - before : 0
    const figure = errors[0] ?? `${allowed} of limit ${LIMIT}, ${(grown / 1e6).toFixed(1)} MB more`
    result(
      `${sent} requests`,
      victim.up && errors.length === 0 && allowed <= LIMIT && grown < MOST,
      victim.up ? figure : `${victim.ended} ${figure}`,
    )
  },
})

const FIELDS = [
  'accept',
  'x-key',
  'cookie',
  'x-forwarded-for',
  'forwarded',
  'host',
  'connection',
  'expect',
  'upgrade',
  'content-length',
  'transfer-encoding',
  'x-http-method-override',
]
const VALUES = [
  '*/*',
  'a',
  'close',
  'chunked',
  '0',
  '-1',
  '100-continue',
  'websocket',
  '1.2.3.4',
  'for="[::1]"',
  '\u00ff',
  '"',
  'a,b;q=',
  ';;,,',
  '__proto__',
  'x'.repeat(3_000),
]
const TARGETS = [
  '/',
  '*',
  '/api/7',
  '//',
  'http://h/api/7',
  '/%',
  '/%zz',
  '/..%2f',
  '/?a=b',
  '/#',
  '/api/%00',
  '\\',
  'h:80',
  '/\u00e9',
  `/${'a/'.repeat(800)}`,
  `/${'|'.repeat(2_000)}`,
]

function request(random: Random): Buffer {
  const fields: Record<string, string> = {}
  for (let count = random.below(5); count > 0; count--) fields[random.pick(FIELDS)] = random.pick(VALUES)
  const method = random.pick(['GET', 'HEAD', 'POST', 'OPTIONS', 'PURGE', 'M-SEARCH', 'get', 'CONNECT'])
  const text = Buffer.from(requestText(method, random.pick(TARGETS), fields), 'latin1')
  return random.chance(0.5) ? mutatedBytes(random, text) : text
}
