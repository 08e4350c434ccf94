import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import { flood, requestText } from '../harness/wire.ts'

/** Sends odd methods, and fields that name another method. They must neither bypass a limit nor create an unbounded number of keys. */
export const methods = attack<{ readonly key: string }>({
  name: 'methods',
  targets: ADAPTERS,
  short: { targets: ['express5', 'fastify5', 'koa3', 'node'] },

  async victim({ target, args: { key } }) {
    return serve(target as never, { options: { key, limit: 3, interval: '1h' } })
  },

  async run({ start, result }) {
    const names = [
      'GET',
      'HEAD',
      'POST',
      'PUT',
      'PATCH',
      'DELETE',
      'OPTIONS',
      'PROPFIND',
      'MKCOL',
      'LOCK',
      'M-SEARCH',
      'QUERY',
      'TRACE',
      'LINK',
    ]
    const victim = await start({ key: 'all' })
    const fields = { 'X-HTTP-Method-Override': 'OPTIONS', 'X-Method-Override': 'HEAD' }
    const replies = await flood(victim.port, 60, (i) => requestText(names[i % names.length] as string, '/', i % 2 === 0 ? fields : {}), 1)
    const allowed = replies.filter(({ status }) => status > 0 && status < 400).length
    result('14 methods, with fields that override them', allowed <= 3 && victim.up, `${allowed} of limit 3`)
  },
})
