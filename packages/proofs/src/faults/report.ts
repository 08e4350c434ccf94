import { ADAPTERS } from './protocol.ts'
import { type FaultResult, INTERVAL, LIMIT } from './run-fault.ts'
import type { TrialResult } from './trials.ts'

const percent = (part: number): string => `${(100 * part).toFixed(part === 0 || part >= 0.1 ? 0 : 1)} %`
const ms = (value: number | undefined): string => (value === undefined ? 'not noticed' : `${Math.round(value)} ms`)

/** One result on one line. */
export function line(result: FaultResult): string {
  return cells(result).join(' | ')
}

function cells({ name, calm, faulty, calmOvershoot, overshoot, syncedAfter, lost, doubled, degradations }: FaultResult): string[] {
  return [
    name,
    `${faulty.answered} of ${faulty.sent}`,
    `${faulty.p50.toFixed(1)} / ${faulty.p99.toFixed(0)}`,
    `${calm.p50.toFixed(1)} / ${calm.p99.toFixed(0)}`,
    String(faulty.serverErrors),
    `${percent(overshoot.worst)} (${percent(calmOvershoot.worst)})`,
    ms(syncedAfter),
    String(degradations),
    `${lost} / ${doubled}`,
  ]
}

const HEAD = [
  'fault',
  'answered',
  'p50 / p99, ms',
  'without it',
  '5xx',
  'worst overshoot (without)',
  'synced after',
  'storeDown',
  'lost / doubled',
]

/** One trial on one line. */
export function trialLine({ name, real, simulated }: TrialResult): string {
  return `| ${name} | ${percent(real)} | ${percent(simulated)} |`
}

/** The page of the documentation. */
export function page(results: readonly FaultResult[]): string {
  const rows = [HEAD, HEAD.map(() => '---'), ...results.map(cells)]
  return `# What faults of the store do

Three processes, one each with ${ADAPTERS.join(', ')}, share a real Redis, or another store where the fault names it. Clients send 25 requests a
second with one key, half of its limit of ${LIMIT} per ${INTERVAL / 1000} s, and 150 with another, three times as much as it may. Then something breaks.
\`pnpm faults --write\` makes it happen again and writes this page.

- **answered**: requests from the begin of the fault on, of those that were sent.
- **p50 / p99**: what clients waited from the begin of the fault on, and in the same run without it.
- **worst overshoot**: units beyond the limit in the worst interval of the whole run; in parentheses without the fault.
- **synced after**: from when the store took writes again until the last of the three processes exchanged counts with it.
- **failMode**: changes of state to \`failMode\`, of three processes.
- **lost / doubled**: the difference between what clients were granted and what the store has counted when all is over.

${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}

While the store is away each process allows its share, so a key whose requests fall unevenly on the processes is allowed less
than its limit, and units that were counted but not yet exchanged when the fault began come on top of it. A store that falls
silent is known to be away only when the exchange's deadline (\`timeout\`, 1 s) has passed; but as soon as an answer is overdue,
by 50 ms or ten usual round trips, whichever is later, processes decide by share already. A store that is slow all the time is not
silent: what its round trip costs is the bound of [accuracy](../guides/accuracy.md#the-distance-to-the-store), here three times the limit's rate for 200 ms of 2 s, and what
is counted but not sent. Processes that have never reached the store do not know how many they are: each allows the whole limit, or with
\`expectedProcesses: n\` its part ([production](../guides/production.md#starting-while-the-store-is-down)).
`
}
