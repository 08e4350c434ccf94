import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import { reached, Wire } from '../harness/wire.ts'
import { spell } from './spelling-generated.ts'

/**
 * Spells a route in many ways. By default the key is the route, so all spellings must share one key. A hand-written router may have a
 * second one, because Weir can't know how it reads targets: all targets with ambiguous readings share that key.
 */
export const spellingRouteKeys = attack<null>({
  name: 'spelling-route-keys',
  targets: ADAPTERS,

  async victim({ target }) {
    return serve(target as never, { options: { key: 'route', limit: 1, interval: '1h', maxKeys: 100_000 }, routes: ['/login', '/api/pay'] })
  },

  async run({ target, start, result, short, random }) {
    const count = short ? 200 : 3_000
    const most = target === 'node' ? 2 : 1
    const victim = await start(null)
    const wire = new Wire(victim.port)
    for (const route of ['/login', '/api/pay']) {
      const through: string[] = []
      for (let i = 0; i < count; i++) {
        const spelling = i === 0 ? route : spell(random, route)
        const reply = await wire.request('GET', spelling)
        if (reached([reply]) === 1) through.push(spelling)
      }
      const figure = through.length <= 1 ? 'one key' : `${through.length} keys, such as ${through.slice(1, 7).join('  ')}`
      result(`${count} spellings of ${route}`, through.length <= most && through[0] === route, figure)
    }
    wire.close()
  },
})
