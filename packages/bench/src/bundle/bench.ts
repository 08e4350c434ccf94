import type { Bench } from '../harness/bench.ts'
import { compareBundles, measureBundles } from './sizes.ts'

/** The code that an application with an adapter bundles. */
export const bundle: Bench = async () => {
  const sizes = await measureBundles()
  const compared = await compareBundles()
  return [
    {
      title: "Bundles, minified; the framework and the store's client are not in them",
      rows: sizes.map(({ name, minified, gzip, parts }) => ({
        bundle: name,
        bytes: minified,
        gzip,
        parts: parts
          .slice(0, 5)
          .map(([part, bytes]) => `${part} ${bytes}`)
          .join(', '),
      })),
      goals: compared.map(({ name, over, bytes, most, goal = most }) => ({
        what: over === undefined ? `${name}, gzip` : `${name}, added, gzip`,
        value: bytes,
        most: goal,
      })),
    },
  ]
}
