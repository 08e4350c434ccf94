import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { ATTACKS } from './attacks/index.ts'
import { makeProject } from './harness/project.ts'
import { jobsOf, runJobs } from './harness/run.ts'
import { type Row, shown, tableOf } from './harness/table.ts'

const program = new Command('attack')
  .description('Attacks the packed packages, in fresh processes and over real sockets, and shows which attacks succeeded.')
  .option('--only <text>', 'only attacks whose name or target contains this')
  .option('--short', 'smaller, for CI')
  .option('--all', 'a row for everything that was tried')
  .option('--seed <number>', 'of everything that is random; by default 1 with --short, else another each time', Number)
  .option('--time <seconds>', 'seconds that each fuzz lasts', Number)
  .parse()
type Options = { only?: string; short?: true; all?: true; seed?: number; time?: number }
const { only, short = false, all = false, time = short ? 1.5 : 20, ...given } = program.opts<Options>()
const seed = given.seed ?? (short ? 1 : Date.now() % 1_000_000)

const jobs = jobsOf(ATTACKS, short).filter(
  ({ attack, target }) => only === undefined || attack.name.includes(only) || target.includes(only),
)
if (jobs.length === 0) {
  console.error(`No attack is named ${only}; there are ${ATTACKS.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}
const directory = mkdtempSync(join(tmpdir(), 'weir-attack-'))
process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

console.log(`seed ${seed}`)
const rows = new Map(jobs.map((job): [unknown, Row] => [job, { job, results: [] }]))
const began = performance.now()
const settings = { program: await makeProject(directory), short, seed, time: time * 1_000 }
const made = performance.now()
const breaches: string[] = []
await runJobs(jobs, settings, (job, results) => {
  rows.set(job, { job, results })
  for (const { tried, held, figure } of results) {
    if (held) continue
    breaches.push(`GOT THROUGH ${job.attack.name} (${job.target}, ${job.store}): ${shown(tried)} ${shown(figure, 2_000)}`)
    console.log(breaches.at(-1))
  }
})

const results = [...rows.values()].flatMap(({ results }) => results)
const through = results.filter(({ held }) => !held).length
const seconds = (from: number): string => ((performance.now() - from) / 1_000).toFixed(0)
console.log(tableOf([...rows.values()], all))
// Printed again after the table, so that the end of a log shows all failures.
for (const breach of breaches) console.log(breach)
console.log(
  `${results.length - through} held, ${through} got through (${seconds(began)} s, ${seconds(made)} s of them attacks; seed ${seed})`,
)
process.exit(through === 0 ? 0 : 1)
