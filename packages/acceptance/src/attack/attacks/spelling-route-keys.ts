import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import { reached, Wire } from '../harness/wire.ts'
import { spell } from './spelling-generated.ts'

/**
 * By default the key is the route, so one route must not be several, however it is spelled. A router written by hand, of which
 * nobody knows how it reads targets, may have one more: what readings differ about is counted under a key that all such targets share.
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
