import { once } from 'node:events'
import { CALLGRIND, collected, hasValgrind, REPEATABLE } from '../harness/callgrind.ts'
import { startProgram } from '../harness/programs.ts'
import { type Report, type Row, round } from '../harness/report.ts'
import type { DecisionInput } from './program.ts'

const FLOOR = 'plain window'
const WEIR = 'weir'
const WITH_STORE = 'weir with a store'

/**
 * Instructions for each decision, and their ratios to the plain window and to `fixedWindow()`. They are counted, not timed, so they
 * are nearly the same on a busy machine. Needs valgrind.
 *
 * @param most the greatest allowed ratio of each algorithm's instructions to those of `fixedWindow()`
 */
export async function instructionsOf(algorithms: readonly string[], most: number, others: readonly string[]): Promise<Report[]> {
  if (!hasValgrind('instructions of a decision')) return []
  const floor = await perDecision(FLOOR)
  const weir = await perDecision(WEIR)
  const rows: Row[] = []
  const reached: { what: string; value: number; most: number }[] = []
  for (const contender of [FLOOR, WEIR, ...algorithms, ...others]) {
    const count = contender === FLOOR ? floor : contender === WEIR ? weir : await perDecision(contender)
    const times = { 'times the plain window': round(count / floor), 'times fixedWindow()': round(count / weir) }
    rows.push({ contender, instructions: Math.round(count), ...times })
    if (algorithms.includes(contender))
      reached.push({ what: `instructions of ${contender}, times fixedWindow()`, value: count / weir, most })
  }
  return [
    { title: 'One decision, instructions: 1,000 keys, cached strings, allowed', rows, goals: reached },
    { title: 'One decision, instructions, by keys and outcome: cached strings', rows: await byOutcome() },
  ]
}

/** The instructions of both outcomes, for one key and for many. */
async function byOutcome(): Promise<Row[]> {
  const rows: Row[] = []
  for (const contender of [FLOOR, WEIR, WITH_STORE]) {
    for (const keys of [1, 1000]) {
      const [allow, reject] = [await perDecision(contender, keys, 'allow'), await perDecision(contender, keys, 'reject')]
      rows.push({ contender, keys, allow: Math.round(allow), reject: Math.round(reject) })
    }
  }
  return rows
}

/** Subtracts a shorter run from a longer one, because both contain the start and the compiler's work on hot code. */
async function perDecision(contender: string, keys = 1000, outcome: DecisionInput['outcome'] = 'allow'): Promise<number> {
  const [fewer, more] = [200_000, 300_000]
  const total = (alone: number) => countOf({ contender, keys, outcome }, alone)
  const [short, long] = await Promise.all([total(fewer), total(more)])
  return (long - short) / (more - fewer)
}

async function countOf(situation: Pick<DecisionInput, 'contender' | 'keys' | 'outcome'>, alone: number): Promise<number> {
  const input: DecisionInput = { ...situation, strings: 'cached', slice: 5_000, slices: 0, alone }
  const child = await startProgram('decision', input, { under: CALLGRIND, execArgv: REPEATABLE })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (part: string) => {
    said += part
  })
  const [status] = (await once(child, 'close')) as [number | null]
  if (status !== 0) throw new Error(`The count of ${situation.contender} ended with ${status}:\n${said.slice(-2000)}`)
  return collected(said)
}
