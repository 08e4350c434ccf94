import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import { reached, Wire } from '../harness/wire.ts'

const LIMIT = 2

/** Spellings that a router may match with `/login`. The real router decides which ones it matches. */
const SPELLINGS: readonly string[] = [
  ...['/login', '/login/', '//login', '/login//', '/./login', '/x/../login', '/login/.', '/login/x/..', '/../login', '/%2e/login'],
  ...['/LOGIN', '/Login/', '/%6cogin', '/%6Cogin', '/logi%6e', '/%4Cogin', '/lo%67in/', '/login%2f', '/%2flogin', '/login%2F'],
  ...[
    '/login?',
    '/login?x',
    '/login?x=/',
    '/login#',
    '/login#x',
    '/login;',
    '/login;x',
    '/login;x=1',
    '/;x/login',
    '/login%3b',
    '/login%3bx',
  ],
  ...['/login\\', '/login\\#', '\\login', '/\\login', '/x/..\\login', '/x\\..\\login', '\\\\login', '/login\\?', '/login/\\', '/.\\login'],
  ...['http://h/login', 'http://h/login\\', 'http://h\\login', 'http://h//login', 'HTTP://h/login', 'http://h/login#x', 'http://h?/login'],
  ...[
    'http://h/x/../login',
    'http://u:p@h/login',
    'http://h:80/login',
    'http:/login',
    'http:login',
    'http:///login',
    'x://h/login',
    'x:/login',
  ],
  ...['//h/login', '///login', '/h/../login', 'login', './login', '?/login', '#/login', '/login%00', '/login%20', '/login\t', '/log\tin'],
  ...[
    '/login%0a',
    '/login%23',
    '/login%3f',
    '/login%5c',
    '/login%c0%af',
    '/login\u00a0',
    '/login\u00ad',
    '/\u017flogin',
    '/login|',
    '/login"',
  ],
  ...[
    '/login^',
    '/login`',
    '/login{}',
    '/login<>',
    '/login%',
    '/login%zz',
    '/%u006cogin',
    '/login%2e',
    '/login%2e/',
    '/login..',
    '/login/..;/login',
  ],
]

/** Sends known spellings. A handler must not run more often than its policy's limit, by the rules of the real router. */
export const spellingNamed = attack<{ readonly framework: Readonly<Record<string, unknown>> }>({
  name: 'spelling-named',
  targets: ADAPTERS,

  async victim({ target, args: { framework } }) {
    const { header, paths } = await import('@weir/core/http')
    // Each spelling has its own key.
    const options = { key: header('x-try'), match: paths('POST /login'), limit: LIMIT, interval: '1h' }
    return serve(target as never, { options, routes: ['/login'], framework })
  },

  async run({ target, start, result, short }) {
    for (const framework of short ? [{}] : variantsOf(target)) {
      const victim = await start({ framework })
      const wire = new Wire(victim.port)
      for (const spelling of SPELLINGS) {
        const replies = []
        for (let i = 0; i < LIMIT + 2; i++)
          replies.push(await wire.request('POST', spelling, { 'x-try': String(SPELLINGS.indexOf(spelling)) }))
        const allowed = reached(replies)
        result(
          `POST ${spelling} ${optionsText(framework)}`,
          allowed <= LIMIT && victim.up,
          allowed > LIMIT ? `${allowed} of limit ${LIMIT}` : '',
        )
      }
      wire.close()
    }
  },
})

/** Settings of routers with which more or fewer spellings reach a handler. */
export function variantsOf(target: string): readonly Readonly<Record<string, unknown>>[] {
  if (target.startsWith('express')) return [{}, { 'strict routing': true, 'case sensitive routing': true }]
  const fastify = { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, caseSensitive: false }
  if (target === 'fastify4') return [{}, fastify]
  if (target === 'fastify5') return [{}, { routerOptions: fastify }, { routerOptions: { useSemicolonDelimiter: true } }]
  if (target.startsWith('koa')) return [{}, { strict: true, sensitive: true }]
  return [{}]
}

function optionsText(framework: Readonly<Record<string, unknown>>): string {
  return Object.keys(framework).length === 0 ? '' : JSON.stringify(framework)
}
