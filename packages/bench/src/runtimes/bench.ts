import type { Bench } from '../harness/bench.ts'
import type { Report } from '../harness/report.ts'
import { workersBundle } from './bundle.ts'
import { freezes } from './freezes.ts'
import { workers } from './workers.ts'

/** The parts of the bench, by the names of `--only`. */
const PARTS: Readonly<Record<string, Bench>> = {
  bundle: async () => [await workersBundle()],
  freezes,
  workers,
}

/** Other places to run than a process that never stands still: Cloudflare Workers, and functions. */
export const runtimes: Bench = async (options) => {
  const reports: Report[] = []
  for (const [name, part] of Object.entries(PARTS)) {
    if (options.only === undefined || options.only.includes(name)) reports.push(...(await part(options)))
  }
  return reports
}
