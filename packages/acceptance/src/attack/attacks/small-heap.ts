import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import { serve } from '../harness/serve.ts'
import { flood, requestText } from '../harness/wire.ts'

/** Sends long keys to a process with the heap of a small container. It must not run out of memory. */
export const smallHeap = attack<{ readonly key: 'header' | 'route' }>({
  name: 'small-heap',
  targets: ADAPTERS,
  short: { targets: ['express5', 'fastify4'] },

  async victim({ target, args: { key } }) {
    const { header } = await import('@weir/core/http')
    const options = { key: key === 'header' ? header('x-key') : 'route', limit: 1_000, interval: '1h' }
    return serve(target as never, { options })
  },

  async run({ start, result, short }) {
    const heap = short ? 40 : 192
    const count = short ? 2_500 : 20_000
    const filler = 'k'.repeat(14_000)
    for (const key of short ? (['header'] as const) : (['header', 'route'] as const)) {
      const victim = await start({ key }, { heap })
      const make = (i: number): string => {
        const word = [...String(i)].map((digit) => 'qrstuvwxyz'[Number(digit)]).join('')
        return key === 'header' ? requestText('GET', '/', { 'x-key': word + filler }) : requestText('GET', `/somewhere-${word}?${filler}`)
      }
      // Sent in parts, so that the attack stops when the process has ended.
      let sent = 0
      for (; sent < count && victim.up; sent += 500) await flood(victim.port, 500, (i) => make(sent + i))
      result(`${count} requests of 14 KB, keys by ${key}, ${heap} MB`, victim.up, victim.up ? '' : `${victim.ended} after ${sent}`)
      await victim.kill()
    }
  },
})
