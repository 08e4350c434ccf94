import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import { reached, Wire } from '../harness/wire.ts'

const LIMIT = 10
/** Values that a user's cost function returns. `valueNamed` makes the values that JSON can't express. */
const COSTS = [
  ...[
    '0',
    '-0',
    '-1',
    '-1e308',
    'NaN',
    'Infinity',
    '-Infinity',
    '1e308',
    '5e-324',
    '9007199254740993',
    '11',
    '10',
    '1',
    '0.5',
    '1e-9',
    '2.5',
  ],
  ...['null', 'undefined', '"3"', '"x"', '[]', '[5]', '{}', 'true', '10n', 'Symbol("x")'],
] as const

/** Returns odd values from a cost function. No key may exceed its limit, and a rejection of a cost that never fits must report that. */
export const costs = attack<null>({
  name: 'costs',
  targets: ADAPTERS,
  stores: ['none', 'memory'],
  short: { stores: ['none'] },

  async victim(given) {
    const { storeOf } = await import('../harness/serve.ts')
    const { header } = await import('@weir/core/http')
    const values = new Map<string, unknown>(COSTS.map((text) => [text, valueNamed(text)]))
    const cost = (request: { headers?: Record<string, string>; req?: { headers: Record<string, string> } }): unknown =>
      values.get(String((request.headers ?? request.req?.headers)?.['x-cost']))
    return serve(given.target as never, {
      options: { key: header('x-cost'), limit: LIMIT, interval: '1h', cost, ...(await storeOf(given)) },
    })
  },

  async run({ start, result }) {
    const victim = await start(null)
    const wire = new Wire(victim.port)
    for (const text of COSTS) {
      const replies = []
      for (let i = 0; i < 24; i++) replies.push(await wire.request('GET', '/', { 'x-cost': text }))
      const value = valueNamed(text)
      const good = typeof value === 'number' && value > 0 && Number.isFinite(value)
      const most = good ? Math.floor(LIMIT / value) : LIMIT
      const allowed = reached(replies)
      const retry = replies.some(({ status, headers }) => status === 429 && headers['retry-after'] !== undefined)
      const never = good && value > LIMIT
      const held = victim.up && allowed <= most && !(never && retry) && replies.every(({ status }) => status > 0 && status < 500)
      result(
        `cost ${text}`,
        held,
        `${allowed} of at most ${Math.min(most, 24)}${never && retry ? ', Retry-After though it never fits' : ''}`,
      )
    }
    wire.close()
  },
})

function valueNamed(text: string): unknown {
  switch (text) {
    case 'null':
      return null
    case 'undefined':
      return undefined
    case 'true':
      return true
    case '10n':
      return 10n
    case 'Symbol("x")':
      return Symbol('x')
    default:
      return /^["[{]/.test(text) ? JSON.parse(text) : Number(text)
  }
}
