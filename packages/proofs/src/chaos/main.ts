import { positive } from '@weir/bench/arguments'
import { Command } from 'commander'
import { killFailuresOf, killsWithLeases } from './kills.ts'
import { killsWithSlots, slotFailuresOf } from './slot-kills.ts'
import { failuresOf, soak } from './soak.ts'

const program = new Command('chaos')
  .description('Runs mixed load on three processes with random faults, and checks for leftovers at the end.')
  .option('--minutes <number>', 'how long', positive, 10)
  .option('--seed <number>', 'which faults; the same seed gives the same ones', Number, Date.now() % 100_000)
  .option('--leases', 'instead, four processes that take quota ahead, of which one is killed in each interval')
  .option('--slots', 'instead, run four processes whose requests use slots, and kill one process after another')
  .parse()
const { minutes, seed, leases, slots } = program.opts<{ minutes: number; seed: number; leases?: true; slots?: true }>()

console.log(`seed ${seed}`)
if (leases) {
  const found = await killsWithLeases({ seed, intervals: Math.ceil(minutes * 30) })
  console.log(`${found.kills} processes killed; allowed in each interval, of ${found.limit}: ${found.allowed.join(' ')}`)
  const wrong = killFailuresOf(found)
  for (const failure of wrong) console.error(`FAILED: ${failure}`)
  process.exit(wrong.length > 0 ? 1 : 0)
}
if (slots) {
  const found = await killsWithSlots({ seed, kills: Math.ceil(minutes * 40) })
  console.log(
    `${found.kills} processes killed; of ${found.requests} requests ${found.most} were in flight at a time at most, of ${found.limit}`,
  )
  const wrong = slotFailuresOf(found)
  for (const failure of wrong) console.error(`FAILED: ${failure}`)
  process.exit(wrong.length > 0 ? 1 : 0)
}
const result = await soak(minutes, seed, (line) => console.log(`- ${line}`))
const { verdict, lost, doubled, heapSlope, faults } = result
console.log(`${faults.length} faults; ${verdict.answered} of ${verdict.sent} requests answered, ${verdict.serverErrors} with 5xx`)
console.log(`p50 ${verdict.p50.toFixed(1)} ms, p99 ${verdict.p99.toFixed(1)} ms; ${lost} units lost, ${doubled} doubled`)
console.log(`heap: ${(heapSlope / 1024).toFixed(0)} KiB per minute`)
const failures = failuresOf(result)
for (const failure of failures) console.error(`FAILED: ${failure}`)
// The process must exit explicitly: after so many kills it once spun in the clean-up of Node.js 20 and never ended.
process.exit(failures.length > 0 ? 1 : 0)
