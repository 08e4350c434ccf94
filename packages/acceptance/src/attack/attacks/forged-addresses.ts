import { attack } from '../harness/attack.ts'
import { ADAPTERS, type Target } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import { reached, Wire } from '../harness/wire.ts'

const LIMIT = 2
/** The client's real address, which the trusted proxy appends. */
const REAL = '198.51.100.7'

type Case = { readonly what: string; readonly trust?: unknown; readonly proxied: boolean }

/** Forges addresses. Clients must not choose the address by which they are counted, even behind correctly trusted proxies. */
export const forgedAddresses = attack<{ readonly trust?: unknown }>({
  name: 'forged-addresses',
  targets: ADAPTERS,
  short: { targets: ['express5', 'fastify5', 'koa3', 'node'] },

  async victim({ target, args: { trust } }) {
    return serve(target as never, { options: { key: 'ip', limit: LIMIT, interval: '1h' }, trust })
  },

  async run({ target, start, result }) {
    for (const { what, trust, proxied } of casesOf(target)) {
      const victim = await start({ trust })
      const wire = new Wire(victim.port)
      const replies = []
      for (let i = 0; i < 24; i++) {
        const forged = FORGERIES[i % FORGERIES.length]?.(`203.0.113.${i}`) ?? {}
        const forwarded = [forged['X-Forwarded-For'], proxied ? REAL : undefined].filter((part) => part !== undefined).join(', ')
        const { 'X-Forwarded-For': _, ...fields } = forged
        replies.push(await wire.request('GET', '/', forwarded === '' ? fields : { ...fields, 'X-Forwarded-For': forwarded }))
      }
      wire.close()
      await victim.kill()
      result(`12 forgeries, ${what}`, reached(replies) <= LIMIT, `${reached(replies)} of limit ${LIMIT}`)
    }
  },
})

const FORGERIES: readonly ((address: string) => Record<string, string>)[] = [
  (address) => ({ 'X-Forwarded-For': address }),
  (address) => ({ 'X-Forwarded-For': `${address}, 127.0.0.1` }),
  (address) => ({ 'X-Forwarded-For': `127.0.0.1, ${address}` }),
  (address) => ({ 'X-Forwarded-For': `${address}:1234` }),
  (address) => ({ 'X-Forwarded-For': `::ffff:${address}` }),
  (address) => ({ Forwarded: `for=${address};proto=http` }),
  (address) => ({ 'X-Real-IP': address }),
  (address) => ({ 'CF-Connecting-IP': address, 'True-Client-IP': address }),
  (address) => ({ 'X-Client-IP': address, 'X-Cluster-Client-IP': address, 'Fastly-Client-IP': address }),
  (address) => ({ Via: `1.1 ${address}`, 'X-Forwarded-Host': address, 'X-Original-Forwarded-For': address }),
  (address) => ({ 'X-Forwarded-For': ` ,${address},, ` }),
  (address) => ({ 'x-forwarded-for': address, 'X-FORWARDED-FOR': `${address}x` }),
]

function casesOf(target: Target): Case[] {
  const direct: Case = { what: 'no proxy is trusted', proxied: false }
  if (target.startsWith('express') || target.startsWith('fastify')) {
    const one = (trust: unknown, name: string): Case => ({ what: `behind a proxy, ${name} is trusted`, trust, proxied: true })
    return [
      direct,
      one('127.0.0.1', 'its address'),
      one('127.0.0.0/8', 'its network'),
      ...(target.startsWith('express') ? [one(1, 'one')] : []),
    ]
  }
  if (target.startsWith('koa')) {
    return [direct, { what: 'behind a proxy, one is trusted', trust: { proxy: true, maxIpsCount: 1 }, proxied: true }]
  }
  return [direct]
}
