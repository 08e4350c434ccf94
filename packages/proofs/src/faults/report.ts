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
  'store down',
  'lost / doubled',
]

/** One trial on one line. */
export function trialLine({ name, real, simulated }: TrialResult): string {
  return `| ${name} | ${percent(real)} | ${percent(simulated)} |`
}

/** The page of the documentation. */
export function page(results: readonly FaultResult[], commit: string): string {
  const rows = [HEAD, HEAD.map(() => '---'), ...results.map(cells)]
  return `# Faults of the store

Each fault was made to happen to a store that real processes use, while clients sent requests.

**A process that starts while the store is down allows the whole limit**, because it doesn't know how many other processes there are. The
rows with "at boot" show this, and their overshoot is by far the largest. Set \`expectedProcesses: n\` to give each process its part of
the limit until the store answers ([starting while the store is down](../guides/production.md#starting-while-the-store-is-down)).

With the default coordination no request waits for the store, whatever happens to it. No request got a 5xx, and no count was lost or
doubled. Otherwise \`npx -y pnpm faults\` fails.

## How it was measured

Three processes, one each with ${ADAPTERS.join(', ')}, share a real Redis, or another store if the fault names it. Clients send 25 requests a
second with one key, half of its limit of ${LIMIT} per ${INTERVAL / 1000} s, and 150 with another key, three times its limit. Then the fault happens.
Measured by \`npx -y pnpm faults --write\` at commit \`${commit}\`. The command writes this page.

- **answered**: answered requests of those sent, from the beginning of the fault on.
- **p50 / p99**: the response time that clients saw from the beginning of the fault on, and in the same run without the fault.
- **5xx**: responses with a server error.
- **worst overshoot**: units beyond the limit in the worst interval of the whole run. The value in parentheses is without the fault.
- **synced after**: the time from the store accepting writes again to the last of the three processes syncing with it.
- **store down**: changes of state to \`storeDown\`, by three processes together.
- **lost / doubled**: the difference between the units granted to clients and the units counted in the store at the end.

## Results

${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}

## Why the overshoot differs

- **Share.** While the store is down each process allows its share. So a key whose requests are spread unevenly gets less than its limit.
  Units that were counted but not synced when the fault began come on top.
- **Silence.** A process knows that a silent store is down only when \`timeout\` (1 s) has passed. It decides by share as soon as an answer is
  overdue: after 50 ms or ten usual round trips, whichever is later. For a key that fills fast it is 5 ms or four usual round trips.
- **Return.** Each process sends a probe every 200 ms, even if the last one wasn't answered. So all processes are back at the same moment.
- **A slow store** isn't silent. Its overshoot is as in [accuracy](../guides/accuracy.md#the-distance-to-the-store): here three times the
  limit's rate for 200 ms of 2 s, and the units that are counted but not sent.
`
}
