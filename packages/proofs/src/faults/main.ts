import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { FAULTS } from './catalog.ts'
import { startFleet } from './fleet.ts'
import { line, page, trialLine } from './report.ts'
import { type FaultResult, LEASES, runFault } from './run-fault.ts'
import type { Stage } from './servers.ts'
import { openStage, type StageName } from './stage.ts'
import { CLIENT } from './store-of.ts'
import { runTrial, TRIALS } from './trials.ts'

const PAGE = fileURLToPath(new URL('../../../../docs/evidence/faults.md', import.meta.url))

const program = new Command('faults')
  .description('Causes each fault of a store while requests pass all three adapters, and shows the results for clients.')
  .option('--only <text>', 'only faults whose name contains this')
  .option('--seed <number>', 'of the load', Number, 1)
  .option('--scale <part>', 'how long faults last, as a part of their usual length', Number, 1)
  .option('--bucket', 'use a token bucket as the policy. Its overshoot is the debt')
  .option('--trials', 'instead, cases of the accuracy goals with processes that are busy all the time, beside a simulation of each')
  .option('--leases', "with coordination: 'leased' and failMode: 'closed'")
  .option('--node-redis', 'processes use the package redis instead of ioredis')
  .option('--write', 'write docs/evidence/faults.md')
  .parse()
const { only, seed, scale, write, trials, bucket, leases, nodeRedis } = program.opts<{
  only?: string
  seed: number
  scale: number
  write?: true
  trials?: true
  bucket?: true
  leases?: true
  nodeRedis?: true
}>()
// Processes inherit the environment.
if (nodeRedis) process.env[CLIENT] = 'node-redis'
const wanted = ({ name }: { readonly name: string }): boolean => only === undefined || name.toLowerCase().includes(only.toLowerCase())

if (trials) {
  for (const trial of TRIALS.filter(wanted)) console.log(trialLine(await runTrial(trial, seed)))
  process.exit()
}

const chosen = FAULTS.filter(wanted)
const nodes = await startFleet()
const results: FaultResult[] = []
let open: { readonly name: StageName; readonly stage: Stage } | undefined
try {
  for (const fault of chosen) {
    if (open?.name !== fault.stage) {
      await open?.stage.stop()
      open = { name: fault.stage, stage: await openStage(fault.stage) }
    }
    const rule = { ...(bucket && { bucket }), ...(leases && LEASES) }
    const result = await runFault(fault, open.stage, nodes, { seed, before: 4_000, after: 3_000, scale, rule })
    results.push(result)
    console.log(line(result))
    for (const cause of result.causes) console.log(`    ${cause}`)
  }
} finally {
  await Promise.all(nodes.map((node) => node.kill()))
  await open?.stage.stop()
}
if (write && !bucket && !leases && !nodeRedis) {
  const commit = execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }).trim()
  writeFileSync(PAGE, page(results, commit))
}
process.exitCode = results.some(({ faulty, lost, doubled }) => faulty.serverErrors + lost + doubled > 0) ? 1 : 0
