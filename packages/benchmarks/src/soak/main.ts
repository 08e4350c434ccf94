import { availableParallelism } from 'node:os'
import { Command, InvalidArgumentError } from 'commander'
import { each, wholeNumber } from '../harness/arguments.ts'
import { FROM_SOURCE, runProgram } from '../harness/programs.ts'
import { round, show } from '../harness/report.ts'
import { CELL_NAMES, type CellName, shares } from './cells.ts'
import { FAULTS, type Fault } from './faulty-store.ts'
import type { SoakInput } from './program.ts'
import { FLAT, type SoakResult, type SoakRun } from './soak.ts'

/** A soak may take so many milliseconds at most: minutes, on a busy machine. */
const PATIENCE = 3_600_000

const options = new Command('pnpm soak')
  .description(
    'Looks whether memory is bounded while the store fails, in virtual time: requests of busy keys, and resets, blocks, refunds, charges, waiting requests and ' +
      `fetches of ever new ones. Memory after a collection must not rise by more than ${FLAT / 1024} kB in the last two thirds of the intervals.`,
  )
  .option('--cell <name>', 'cells whose name contains this, e.g. "central"; may be repeated', each(matching))
  .option('--fault <name>', `one of ${FAULTS.join(', ')}; may be repeated`, each(fault))
  .option('--intervals <n>', 'intervals of each soak', wholeNumber, 5_000)
  .option('--keys <n>', 'busy keys', wholeNumber, 2_000)
  .option('--jobs <n>', 'processes', wholeNumber, availableParallelism())
  .parse()
  .opts<{ cell?: readonly CellName[][]; fault?: readonly Fault[]; intervals: number; keys: number; jobs: number }>()

const cells = options.cell?.flat() ?? CELL_NAMES
const { intervals, keys } = options
const left: SoakRun[] = cells.flatMap((cell) =>
  (options.fault ?? FAULTS).filter((one) => one === 'down' || shares(cell)).map((one) => ({ cell, fault: one, intervals, keys })),
)
const order = [...left]
const results = new Map<SoakRun, SoakResult>()

async function work(): Promise<void> {
  for (let run = left.shift(); run !== undefined; run = left.shift()) {
    const result = await runProgram<SoakResult>('soak', [run] satisfies SoakInput, { execArgv: FROM_SOURCE, patience: PATIENCE })
    results.set(run, result)
    console.log(
      `${result.flat ? 'flat' : 'GROWS'}  ${run.cell}, ${run.fault}: ${Math.round(result.slope)} B per interval, ${round(result.seconds)} s`,
    )
  }
}
await Promise.all(Array.from({ length: options.jobs }, work))

const kilobytes = (bytes: number): number => Math.round(bytes / 1_024)
show({
  title: `Memory while the store fails: ${intervals} intervals, ${keys} busy keys`,
  rows: order.map((run) => {
    const { at50, atEnd, slope, flat } = results.get(run) as SoakResult
    const figures = { 'kB after 50 intervals': kilobytes(at50), 'kB at the end': kilobytes(atEnd), 'B per interval': Math.round(slope) }
    return { cell: run.cell, store: run.fault, ...figures, '': flat ? '' : 'grows' }
  }),
})
if ([...results.values()].some(({ flat }) => !flat)) process.exitCode = 1

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
