import { attack } from '../harness/attack.ts'
import { ADAPTERS } from '../harness/given.ts'
import type { Random } from '../harness/random.ts'
import { serve } from '../harness/serve.ts'
import { reached, Wire } from '../harness/wire.ts'
import { variantsOf } from './spelling-named.ts'

/** Routes with letters only, with characters that escape differently, with several segments, and with parameters. */
const ROUTES = ['/login', '/api/v-one/pay', '/a!b', "/it's", '/a(b)', '/a,b@c', '/a~b_c.d', '/users/:name/keys'] as const
/** The routes in a policy's syntax, which needs escapes for some characters. */
const MATCHES = ROUTES.map((route) => route.replace(/[!()]/g, '\\$&'))

/** Sends random spellings. Each request that the real router sends to a route's handler must be counted for this route. */
export const spellingGenerated = attack<{ readonly framework: Readonly<Record<string, unknown>> }>({
  name: 'spelling-generated',
  targets: ADAPTERS,

  async victim({ target, args: { framework } }) {
    const { header, paths } = await import('@weir/core/http')
    const policies = MATCHES.map((match, i) => ({
      name: `p${i}`,
      key: header('x-try'),
      match: paths(`POST ${match}`),
      limit: 1,
      interval: '1h',
    }))
    // In Express 4 and path-to-regexp 6, literal parentheses need an escape.
    const routes = ROUTES.map((route) =>
      target === 'fastify4' || target === 'fastify5' || target === 'node' ? route : route.replace(/[!()]/g, '\\$&'),
    )
    const escaped = target === 'node' ? routes.map((route) => route.replace(/[()]/g, '\\$&')) : routes
    return serve(target as never, { options: { policies }, routes: escaped, framework })
  },

  async run({ target, start, result, short, random }) {
    const count = short ? 250 : 4_000
    for (const framework of short ? [{}] : variantsOf(target)) {
      const victim = await start({ framework })
      const wire = new Wire(victim.port)
      const through: string[] = []
      let handled = 0
      for (let i = 0; i < count; i++) {
        const spelling = spell(random, random.pick(ROUTES).replace(':name', 'ann'))
        const replies = [await wire.request('POST', spelling, { 'x-try': String(i) })]
        if (reached(replies) === 0) continue
        handled++
        replies.push(await wire.request('POST', spelling, { 'x-try': String(i) }))
        if (reached(replies) > 1) through.push(spelling)
      }
      wire.close()
      result(`${count} spellings, ${handled} reached a handler`, through.length === 0 && handled > count / 20, several(through))
    }
  },
})

const NOISE = [
  '/',
  '//',
  '\\',
  '.',
  '/.',
  '/..',
  '/x/..',
  ';',
  ';x=1',
  '#',
  '#x',
  '?',
  '?q',
  '%2f',
  '%5c',
  '%2e',
  '%00',
  '%20',
  '\t',
  '|',
  '%3b',
  '%23',
  '%3f',
]

/** Makes one to three changes to a path. For each, there is a router that undoes it. */
export function spell(random: Random, path: string): string {
  let text: string = path
  for (let changes = random.chance(0.6) ? 1 : 2 + random.below(2); changes > 0; changes--) {
    const at = random.below(text.length + 1)
    switch (random.below(9)) {
      case 0:
      case 1: {
        // Escapes one character, more often a sign than a letter.
        const marks = [...text.matchAll(/[^\w/]/g)].map(({ index }) => index)
        const place = marks.length > 0 && random.chance(0.6) ? random.pick(marks) : Math.min(at, text.length - 1)
        const hex = text.charCodeAt(place).toString(16).padStart(2, '0')
        if (text.charCodeAt(place) < 256)
          text = `${text.slice(0, place)}%${random.chance(0.5) ? hex.toUpperCase() : hex}${text.slice(place + 1)}`
        break
      }
      case 2:
        text = text.slice(0, at) + (random.chance(0.5) ? text.slice(at).toUpperCase() : text.slice(at).toLowerCase())
        break
      case 3:
        text = text.slice(0, at) + random.pick(NOISE) + text.slice(at)
        break
      case 4:
        text += random.pick(NOISE)
        break
      case 5:
        text = text.replace(/\//g, (slash) => (random.chance(0.4) ? random.pick(['//', '\\', '/./', '/x/../', '\\..\\']) : slash))
        break
      case 6:
        text = random.pick(['http://h', 'HTTP://h:80', 'http://u@h', 'https://h', '//h', 'ws://h', 'http:']) + text
        break
      case 7:
        // Some parsers turn backslashes into slashes, but only in targets that are not plain.
        text = text.replace(/(?<=.)\//g, () => random.pick(['/', '\\'])) + random.pick(['', '\\', '\\\\', '/'])
        text = random.chance(0.5) ? `${text}#` : `http://h${text}`
        break
      default:
        text = `${random.pick(['/x/..', '/.', '//', '\\', '/x\\..'])}${text}`
    }
  }
  return text.replace(/[\r\n ]/g, '')
}

function several(list: readonly string[]): string {
  return list.length === 0 ? '' : `${list.length}, such as ${[...new Set(list)].slice(0, 6).join('  ')}`
}
