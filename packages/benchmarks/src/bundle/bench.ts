import type { Bench } from '../harness/bench.ts'
import { MOST, measureBundles } from './sizes.ts'

/** What an application that bundles an adapter ships. */
export const bundle: Bench = async () => {
  const sizes = await measureBundles()
  return [
    {
      title: 'Bundles, minified; the framework itself is not in them',
      rows: sizes.map(({ name, minified, gzip, parts }) => ({
        bundle: name,
        bytes: minified,
        gzip,
        parts: parts
          .slice(0, 5)
          .map(([part, bytes]) => `${part} ${bytes}`)
          .join(', '),
      })),
      goals: sizes
        .filter(({ name }) => /^core \+ (express|fastify|koa)$/.test(name))
        .map(({ name, gzip }) => ({ what: `${name}, gzip`, value: gzip, most: MOST })),
    },
  ]
}
