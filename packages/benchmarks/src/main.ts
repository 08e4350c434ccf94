import { fileURLToPath } from 'node:url'
import { pnpm } from '@weir/tooling/run'
import { Command, InvalidArgumentError } from 'commander'
import { bundle } from './bundle/bench.ts'
import { central } from './central/bench.ts'
import { decision } from './decision/bench.ts'
import { etcd } from './etcd/bench.ts'
import { flood } from './flood/bench.ts'
import type { Bench, BenchOptions } from './harness/bench.ts'
import { type Report, show, writeJson } from './harness/report.ts'
import { http } from './http/bench.ts'
import { instructions } from './http/instructions.ts'
import { local } from './local/bench.ts'
import { memory } from './memory/bench.ts'
import { plan } from './plan/bench.ts'
import { redis } from './redis/bench.ts'
import { rules } from './rules/bench.ts'
import { scale } from './scale/bench.ts'
import { snapshot } from './snapshot/bench.ts'
import { stores } from './stores/bench.ts'
import { sync } from './sync/bench.ts'
import { waiting } from './waiting/bench.ts'
import { windows } from './windows/bench.ts'
import { worst } from './worst/bench.ts'

const BENCHES: Readonly<Record<string, Bench>> = {
  decision,
  local,
  memory,
  http,
  instructions,
  redis,
  central,
  stores,
  sync,
  etcd,
  scale,
  snapshot,
  flood,
  windows,
  worst,
  waiting,
  rules,
  plan,
  bundle,
}
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('a whole number of at least 1 is needed')
  return value
}

const program = new Command('pnpm bench')
  .description('Measures Weir beside its peers and a floor, from the built packages, in fresh processes.')
  .argument('[bench...]', `${Object.keys(BENCHES).join(', ')}; default: all`)
  .option('--json <file>', 'write all figures, with versions')
  .option('--rounds <n>', 'rounds of fresh processes', wholeNumber, 3)
  .option('--quick', 'smaller sizes', false)
  .option('--only <stores>', 'stores: some of them, e.g. redis,etcd', (text: string) => text.split(','))
  .option('--against <checkout>', 'local: compare with the packages of another checkout, as they were built there')
  .option('--no-build', 'measure the packages as they were built last')
  .action(async (names: string[], options: BenchOptions & { readonly json?: string; readonly build: boolean }) => {
    const wanted = names.length === 0 ? Object.keys(BENCHES) : names
    const unknown = wanted.filter((name) => BENCHES[name] === undefined)
    if (unknown.length > 0) program.error(`No bench is named ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}`)
    if (options.build) await pnpm(['run', '--silent', 'build'], { cwd: ROOT })
    const reports: Record<string, readonly Report[]> = {}
    for (const name of wanted) {
      reports[name] = await (BENCHES[name] as Bench)(options)
      for (const report of reports[name]) show(report)
      // After each, so that a long run that is ended has left what it found.
      if (options.json !== undefined) writeJson(options.json, reports)
    }
  })
await program.parseAsync()
