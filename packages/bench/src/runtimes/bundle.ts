import { ALLOWED, type Allowed, measureBundles, WORKERS, WORKERS_WHOLE } from '../bundle/sizes.ts'
import type { Report } from '../harness/report.ts'

/** The code that a Worker with local policies bundles. */
export async function workersBundle(): Promise<Report> {
  const sizes = await measureBundles([WORKERS, WORKERS_WHOLE])
  const goals = new Map(ALLOWED.map(({ name, goal, most }: Allowed) => [name, goal ?? most]))
  return {
    title: 'Bundles for Cloudflare Workers, minified',
    rows: sizes.map(({ name, minified, gzip }) => ({ bundle: name, bytes: minified, gzip })),
    goals: sizes.map(({ name, gzip }) => ({ what: `${name}, gzip`, value: gzip, most: goals.get(name) as number })),
  }
}
