import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { each, positive, wholeNumber } from '@weir/bench/arguments'
import { round, show } from '@weir/bench/report'
import { Command, InvalidArgumentError } from 'commander'
import { CELL_NAMES, type CellName, shares } from './cells.ts'
import { FAULTS, type Fault } from './faulty-store.ts'
import type { SoakInput } from './program.ts'
import { PROGRAMS } from './programs.ts'
import { FLAT, type SoakResult, type SoakRun } from './soak.ts'

/** Milliseconds after which a soak is ended. Most take less than an hour of CPU time, but a busy machine needs several hours. */
const PATIENCE = 6 * 3_600_000
/** Megabytes of heap of a process, so that a process with unbounded growth ends soon instead of using up the machine's memory. */
const MOST_HEAP = 1_024

interface Options {
  readonly cell?: readonly CellName[][]
  readonly fault?: readonly Fault[]
  readonly intervals: number
  readonly keys: number
  readonly workers: number
  readonly minutes: number
  readonly record?: string
}

const options = new Command('pnpm soak')
  .description(
    'Looks whether memory is bounded while the store fails, in virtual time: requests of busy keys, and resets, blocks, refunds, charges, waiting requests and ' +
      `fetches of ever new ones. Memory after a collection must not rise by more than ${FLAT / 1024} kB in the last two thirds of the intervals. ` +
      'Ends with 1 if it does.',
  )
  .option('--cell <name>', 'cells whose name contains this, e.g. "central"; may be repeated', each(matching))
  .option('--fault <name>', `one of ${FAULTS.join(', ')}; may be repeated`, each(fault))
  .option('--intervals <n>', 'intervals of each soak', wholeNumber, 5_000)
  .option('--keys <n>', 'busy keys', wholeNumber, 2_000)
  .option('--workers <n>', 'processes at a time', wholeNumber, availableParallelism())
  .option('--minutes <n>', 'starts nothing that would not end within so many minutes', positive, Number.POSITIVE_INFINITY)
  .option('--record <file>', 'adds each result to this file, and skips runs that it already contains. Remove it after changes of the code')
  .parse()
  .opts<Options>()

const { intervals, keys, record } = options
const runs: readonly SoakRun[] = (options.cell?.flat() ?? CELL_NAMES).flatMap((cell) =>
  (options.fault ?? FAULTS).filter((one) => one === 'down' || shares(cell)).map((one) => ({ cell, fault: one, intervals, keys })),
)
const results = new Map<string, SoakResult>(recorded().map((result) => [nameOf(result), result]))
const failures = new Map<string, string>()
const left = runs.filter((run) => !results.has(nameOf(run)))
const began = performance.now()
let longest = 0

async function work(): Promise<void> {
  while (passed() + longest < options.minutes * 60) {
    const run = left.shift()
    if (run === undefined) return
    const start = passed()
    try {
      const execArgv = [`--max-old-space-size=${MOST_HEAP}`]
      kept(await PROGRAMS.run<SoakResult>('soak', [run] satisfies SoakInput, { execArgv, patience: PATIENCE }))
    } catch (error) {
      failures.set(nameOf(run), (error as Error).message)
      progress('FAILED', run, (error as Error).message)
    }
    longest = Math.max(longest, passed() - start)
  }
}

function kept(result: SoakResult): void {
  results.set(nameOf(result), result)
  if (record !== undefined) appendFileSync(record, `${JSON.stringify(result)}\n`)
  progress(result.flat ? 'flat' : 'GROWS', result, `${Math.round(result.slope)} B per interval, ${round(result.seconds)} s`)
}

function progress(what: string, run: SoakRun, text: string): void {
  const done = runs.filter((one) => results.has(nameOf(one)) || failures.has(nameOf(one))).length
  console.log(`${what.padEnd(6)}  ${done} of ${runs.length}  ${run.cell}, ${run.fault}: ${text}`)
}

await Promise.all(Array.from({ length: options.workers }, work))

const found = runs.flatMap((run) => results.get(nameOf(run)) ?? [])
const kilobytes = (bytes: number): number => Math.round(bytes / 1_024)
show({
  title: `Memory while the store fails: ${intervals} intervals, ${keys} busy keys`,
  rows: found.map(({ cell, fault: store, at50, atEnd, slope, flat }) => {
    const figures = { 'kB after 50 intervals': kilobytes(at50), 'kB at the end': kilobytes(atEnd), 'B per interval': Math.round(slope) }
    return { cell, store, ...figures, '': flat ? '' : 'grows' }
  }),
})
const growing = found.filter(({ flat }) => !flat).length
console.log(`${found.length - growing} flat, ${growing} grow, ${failures.size} failed, ${left.length} left; ${Math.round(passed())} s`)
if (left.length > 0 && record !== undefined) console.log('Run the same command again to go on.')
if (growing > 0 || failures.size > 0) process.exitCode = 1

/** Seconds since the start. */
function passed(): number {
  return (performance.now() - began) / 1_000
}

function nameOf(run: SoakRun): string {
  return JSON.stringify([run.cell, run.fault, run.intervals, run.keys])
}

/** The results of earlier parts of this soak. */
function recorded(): SoakResult[] {
  if (record === undefined || !existsSync(record)) return []
  const lines = readFileSync(record, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as SoakResult)
}

function matching(text: string): CellName[] {
  const found = CELL_NAMES.filter((name) => name.includes(text))
  if (found.length === 0) throw new InvalidArgumentError(`There are ${CELL_NAMES.join(', ')}.`)
  return found
}

function fault(text: string): Fault {
  const found = FAULTS.find((name) => name === text)
  if (found === undefined) throw new InvalidArgumentError(`There are ${FAULTS.join(', ')}.`)
  return found
}
