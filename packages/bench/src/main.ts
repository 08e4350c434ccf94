import { fileURLToPath } from 'node:url'
import { pnpm } from '@weir/tooling/run'
import { Command } from 'commander'
import { wholeNumber } from './harness/arguments.ts'
import type { Bench, BenchOptions } from './harness/bench.ts'
import { type Report, show, writeJson } from './harness/report.ts'

/** Loaders of the benches. They run once the packages are built, because the benches measure the built packages. */
const BENCHES: Readonly<Record<string, () => Promise<Bench>>> = {
  decision: async () => (await import('./decision/bench.ts')).decision,
  local: async () => (await import('./local/bench.ts')).local,
  memory: async () => (await import('./memory/bench.ts')).memory,
  http: async () => (await import('./http/bench.ts')).http,
  instructions: async () => (await import('./http/instructions.ts')).instructions,
  redis: async () => (await import('./redis/bench.ts')).redis,
  central: async () => (await import('./central/bench.ts')).central,
  stores: async () => (await import('./stores/bench.ts')).stores,
  sync: async () => (await import('./sync/bench.ts')).sync,
  etcd: async () => (await import('./etcd/bench.ts')).etcd,
  scale: async () => (await import('./scale/bench.ts')).scale,
  snapshot: async () => (await import('./snapshot/bench.ts')).snapshot,
  flood: async () => (await import('./flood/bench.ts')).flood,
  windows: async () => (await import('./windows/bench.ts')).windows,
  worst: async () => (await import('./worst/bench.ts')).worst,
  waiting: async () => (await import('./waiting/bench.ts')).waiting,
  update: async () => (await import('./update/bench.ts')).update,
  rules: async () => (await import('./rules/bench.ts')).rules,
  plan: async () => (await import('./plan/bench.ts')).plan,
  import: async () => (await import('./import/bench.ts')).imports,
  compat: async () => (await import('./compat/bench.ts')).compat,
  budgets: async () => (await import('./budgets/bench.ts')).budgets,
  runtimes: async () => (await import('./runtimes/bench.ts')).runtimes,
  bundle: async () => (await import('./bundle/bench.ts')).bundle,
}
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

const program = new Command('pnpm bench')
  .description('Measures Weir beside its peers and a floor, from the built packages, in fresh processes.')
  .argument('[bench...]', `${Object.keys(BENCHES).join(', ')}; default: all`)
  .option('--json <file>', 'write all figures, with versions')
  .option('--rounds <n>', 'rounds of fresh processes', wholeNumber, 3)
  .option('--quick', 'smaller sizes', false)
  .option(
    '--only <stores>',
    'stores: some of them, e.g. redis,etcd; runtimes: bundle, workers, freezes, or some forms of it, e.g. freezes,leased',
    (text: string) => text.split(','),
  )
  .option('--against <checkout>', 'local: compare with the packages of another checkout, as they were built there')
  .option('--no-build', 'measure the packages as they were built last')
  .action(async (names: string[], options: BenchOptions & { readonly json?: string; readonly build: boolean }) => {
    const wanted = names.length === 0 ? Object.keys(BENCHES) : names
    const unknown = wanted.filter((name) => BENCHES[name] === undefined)
    if (unknown.length > 0) program.error(`No bench is named ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}`)
    if (options.build) await pnpm(['run', '--silent', 'build'], { cwd: ROOT })
    const reports: Record<string, readonly Report[]> = {}
    for (const name of wanted) {
      const bench = await (BENCHES[name] as () => Promise<Bench>)()
      reports[name] = await bench(options)
      for (const report of reports[name]) show(report)
      // The file is written after each bench, so that an interrupted run leaves its results.
      if (options.json !== undefined) writeJson(options.json, reports)
    }
  })
await program.parseAsync()
