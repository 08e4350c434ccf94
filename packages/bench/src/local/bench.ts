import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Bench } from '../harness/bench.ts'
import { CALLGRIND, collected, hasValgrind, REPEATABLE } from '../harness/callgrind.ts'
import { runProgram, startProgram } from '../harness/programs.ts'
import { type Goal, type Row, round } from '../harness/report.ts'
import type { LocalInput, LocalResult } from './program.ts'

const HERE = fileURLToPath(new URL('../../../..', import.meta.url))
const MILLION = 1_000_000

type Situation = Omit<LocalInput, 'core' | 'decisions'>

/** The lengths of the runs of one situation, in decisions. The difference of two runs is the cost of the additional decisions. */
const LENGTHS = [200_000, 400_000, 600_000]

/**
 * The cost of a decision in one process, in instructions and in memory, compared with another checkout: `pnpm bench local --against
 * <checkout>`. Instructions are counted, not timed, so that a busy machine changes nothing. Needs valgrind.
 */
export const local: Bench = async ({ quick, against }) => {
  if (against === undefined) {
    console.log('local: skipped, as there is nothing to compare with; name another checkout by --against')
    return []
  }
  if (!hasValgrind('local')) return []
  const [old, own] = [entryOf(against), entryOf(HERE)]
  const rows: Row[] = []
  const goals: Goal[] = []
  for (const situation of situations(quick)) {
    const [before, now] = await Promise.all([perDecision({ ...situation, core: old }), perDecision({ ...situation, core: own })])
    const { keys, levels, outcome } = situation
    const what = `${levels === 1 ? 'one policy' : 'three levels'}, ${outcome}`
    rows.push({ decision: what, keys, there: Math.round(before), here: Math.round(now), 'times there': round(now / before) })
    goals.push({ what: `${what}, ${keys} keys`, value: now / before, most: levels === 1 ? 1.05 : 1.01 })
  }
  const [before, now] = [await bytesPerKey(old), await bytesPerKey(own)]
  return [
    { title: `Instructions for a decision in one process, beside ${against}`, rows, goals },
    {
      title: `Bytes for each of a million keys, beside ${against}`,
      rows: [{ there: round(before), here: round(now), 'times there': round(now / before) }],
      goals: [{ what: 'bytes for a key', value: now / before, most: 1.01 }],
    },
  ]
}

function entryOf(checkout: string): string {
  const entry = join(checkout, 'packages/core/dist/esm/index.js')
  if (!existsSync(entry)) throw new Error(`There is no ${entry}: run "npx -y pnpm build" there first.`)
  return entry
}

function situations(quick: boolean): Situation[] {
  const outcomes = ['allow', 'reject'] as const
  const sizes = quick ? [1000] : [1, 1000, MILLION]
  return [
    ...sizes.flatMap((keys) => outcomes.map((outcome) => ({ keys, levels: 1, outcome }) as const)),
    ...outcomes.map((outcome) => ({ keys: 1000, levels: 3, outcome }) as const),
  ]
}

/** Instructions for one decision. The lesser of two stretches counts, because the compiler may have worked in the other one. */
async function perDecision(situation: Omit<LocalInput, 'decisions'>): Promise<number> {
  const totals: number[] = []
  for (const decisions of LENGTHS) totals.push(await total({ ...situation, decisions }))
  const stretches = totals
    .slice(1)
    .map((count, i) => (count - (totals[i] as number)) / ((LENGTHS[i + 1] as number) - (LENGTHS[i] as number)))
  // If the compiler's work exceeds the cost of the decisions, nothing was measured and no goal is reached.
  return stretches.every((stretch) => stretch > 0) ? Math.min(...stretches) : Number.NaN
}

async function total(input: LocalInput): Promise<number> {
  const child = await startProgram('local', input, { under: CALLGRIND, execArgv: REPEATABLE })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    said += part
  })
  child.stdout?.resume()
  await once(child, 'close')
  return collected(said)
}

async function bytesPerKey(core: string): Promise<number> {
  const input: LocalInput = { core, keys: MILLION, levels: 1, outcome: 'allow', decisions: 1 }
  return (await runProgram<LocalResult>('local', input, { execArgv: ['--expose-gc'] })).bytesPerKey
}
