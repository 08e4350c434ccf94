import { dashboardVictim } from '../attacks/dashboard.ts'
import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { mutatedBytes } from '../harness/mutate.ts'
import type { Random } from '../harness/random.ts'
import { requestText, Wire } from '../harness/wire.ts'

/** Sends requests to the dashboard from a client without access. */
export const fuzzDashboard = attack<{ readonly who: 'function' }>({
  name: 'fuzz-dashboard',
  targets: ADAPTERS,
  short: { targets: ['express5', 'fastify5', 'koa3', 'node'] },
  victim: dashboardVictim,

  async run({ start, result, random, time }) {
    const victim = await start({ who: 'function' }, { heap: 128 })
    const before = await victim.ask<number>('heap')
    const wrong: string[] = []
    let sent = 0
    const wire = new Wire(victim.port)
    for (const deadline = Date.now() + time; Date.now() < deadline && victim.up; sent++) {
      const bytes = request(random)
      const { status, headers, body } = await wire.send(bytes, 100)
      const told =
        status >= 500 || /event: (hello|view)|"(done|parts)"|<script/.test(body) || headers['content-type']?.includes('event-stream')
      if (told || !victim.up) wrong.push(`${status} to ${JSON.stringify(bytes.toString('latin1'))}`)
    }
    wire.close()
    const seen = victim.up ? { heap: await victim.ask<number>('heap'), blocked: await victim.ask<boolean>('blocked') } : undefined
    const grown = (seen?.heap ?? 0) - before
    const held = seen !== undefined && wrong.length === 0 && !seen.blocked && grown < 15e6
    result(`${sent} requests`, held, wrong[0] ?? (seen === undefined ? victim.ended : `${(grown / 1e6).toFixed(1)} MB more`))
  },
})

function request(random: Random): Buffer {
  const place = random.pick([
    '',
    '/',
    '/events',
    '/block',
    '/unblock',
    '/find',
    '/x',
    '/%',
    '//events',
    '/../events',
    '/events?x=1',
    '/sign-in',
    '/login',
    '/session',
  ])
  const fields: Record<string, string> = {
    'x-weir-dashboard': '1',
    'content-type': random.pick(['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']),
  }
  if (random.chance(0.3)) fields['cookie'] = random.pick(['weir=x', 'a=b; weir_session=__proto__', `weir=${'x'.repeat(4_000)}`, ';;=;'])
  if (random.chance(0.3)) fields['authorization'] = random.pick(['Basic eDp4', 'Basic ', 'Bearer x', 'Basic %%%'])
  if (random.chance(0.3)) fields['origin'] = random.pick(['null', 'http://h', 'http://evil.example', '::'])
  const body = random.pick([
    '',
    '{}',
    '{"key":"k","duration":1000}',
    '{"key":7}',
    '[',
    'null',
    '{"__proto__":{"key":"k"}}',
    `{"key":"${'k'.repeat(2_000)}"}`,
    'password=x',
    'password=%',
  ])
  const text = Buffer.from(requestText(random.pick(['GET', 'POST', 'HEAD', 'PUT', 'OPTIONS']), `/weir${place}`, fields, body), 'latin1')
  return random.chance(0.4) ? mutatedBytes(random, text) : text
}
