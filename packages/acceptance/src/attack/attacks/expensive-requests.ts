import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import { requestText, Wire } from '../harness/wire.ts'

/** The most CPU time of a request, as a multiple of a normal one. */
const MOST = 10
const SIZE = 15_000
const fill = (text: string): string => text.repeat(Math.floor(SIZE / text.length))

const KINDS: Readonly<Record<string, string>> = {
  'Accept of types': requestText('GET', '/', { accept: fill('a/b;q=0.1,') }),
  'Accept of wildcards': requestText('GET', '/', { accept: fill('*/*,') }),
  'Accept of commas': requestText('GET', '/', { accept: fill(',') }),
  'Accept of quotes': requestText('GET', '/', { accept: `a/b;x="${fill('\\"')}` }),
  'a path of \\': requestText('GET', `/${fill('\\')}`),
  'a path of |': requestText('GET', `/${fill('|')}`),
  'a path of slashes': requestText('GET', fill('/')),
  'a path of escapes': requestText('GET', `/${fill('%41')}`),
  'a path of broken escapes': requestText('GET', `/${fill('%')}`),
  'a path of dots': requestText('GET', fill('/..')),
  'a path of single dots': requestText('GET', fill('/.')),
  'a path of segments': requestText('GET', fill('/a')),
  'a path of digits': requestText('GET', `/${fill('1a')}`),
  'a path of capitals': requestText('GET', `/${fill('A/b')}`),
  'a path of octets': requestText('GET', `/${fill('\u00e9')}`),
  'a path of semicolons': requestText('GET', `/${fill(';')}`),
  'a query': requestText('GET', `/?${fill('&a=b')}`),
  'an absolute target': requestText('GET', `http://${fill('h.')}/`),
  'X-Forwarded-For': requestText('GET', '/', { 'x-forwarded-for': fill('1.2.3.4,') }),
  'a key': requestText('GET', '/', { 'x-key': fill('\u00ff') }),
  'many fields': `GET / HTTP/1.1\r\nHost: h\r\n${fill('a: b\r\n')}\r\n`,
}

/** Sends requests that are expensive to parse. A rejection must be cheap, so that an attack does not cost Weir more than its sender. */
export const expensiveRequests = attack<null>({
  name: 'expensive-requests',
  targets: ADAPTERS,
  alone: true,
  short: { targets: ['express5', 'fastify5', 'koa3'] },

  async victim({ target }) {
    const { header, paths } = await import('@weir/core/http')
    const policies = [
      { name: 'all', key: 'all', limit: 1, interval: '1h' },
      { name: 'routes', key: 'route', limit: 1e6, interval: '1h', match: paths('/api/:a/:b', '/*rest') },
      { name: 'keys', key: ['ip', header('x-key')], limit: 1e6, interval: '1h', match: paths('/:x/*y') },
    ]
    const { port } = await serve(target as never, { options: { policies }, ...(target.startsWith('koa') ? {} : { trust: true }) })
    return { port, answer: () => process.cpuUsage().user }
  },

  async run({ start, result, short }) {
    const victim = await start(null)
    const wire = new Wire(victim.port)
    const measure = async (text: string, count: number): Promise<number> => {
      const before = await victim.ask<number>('cpu')
      for (let i = 0; i < count; i++) await wire.send(text)
      return ((await victim.ask<number>('cpu')) - before) / count
    }
    const normal = requestText('GET', '/api/users/7?x=1', { accept: 'application/json', 'user-agent': 'x' })
    await measure(normal, short ? 1_500 : 4_000)
    const floor = await measure(normal, short ? 1_000 : 3_000)
    const rounds = short ? 60 : 300
    for (const [kind, text] of Object.entries(KINDS)) {
      await measure(text, Math.floor(rounds / 3))
      const cpu = await measure(text, rounds)
      result(`${kind}, 15 KB`, victim.up && cpu / floor <= MOST, `${cpu.toFixed(0)} µs, ${(cpu / floor).toFixed(1)} times a normal request`)
    }
    wire.close()
  },
})
