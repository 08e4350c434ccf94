import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { each, positive, wholeNumber } from '@weir/bench/arguments'
import { Command, InvalidArgumentError } from 'commander'
import { attackFor } from './attack/program.ts'
import { type Goal, type GoalCase, type Size, worst } from './goal.ts'
import { GOALS } from './goals.ts'
import { format, header, type Line, linesOf, titleOf } from './report.ts'
import { goalOf, type Task, type TaskResult, tasksOf } from './task.ts'
import { performAll } from './workers.ts'

const ALL: Readonly<Record<string, RegExp>> = { fixed: /^\d/, sliding: /^S/, bucket: /^B/, leases: /^L/, budgets: /^R/, freezes: /^F/ }

interface Options {
  readonly case?: readonly (readonly Goal[])[]
  readonly seeds: number
  readonly intervals?: number
  readonly json?: string
  readonly quick: boolean
  readonly jobs: number
  readonly attack?: true
  readonly minutes: number
  readonly seed: number
}

const program = new Command('pnpm accuracy')
  .description('Measures the promised accuracy of Weir in simulated clusters that run the released code.')
  .option('--case <id>', `one goal only: ${idsOf(GOALS)}, or ${Object.keys(ALL).join(', ')}; may be repeated`, each(chosen))
  .option('--seeds <n>', 'runs of each scenario, with the seeds 1 to n', wholeNumber, 1)
  .option('--intervals <n>', 'measured intervals of each run (default: 80, with --quick 20)', wholeNumber)
  .option('--json <file>', 'write all figures')
  .option('--quick', 'fewer intervals and combinations', false)
  .option('--jobs <n>', 'processes', wholeNumber, availableParallelism())
  .option(
    '--attack',
    'instead, search for traffic that exceeds the documented overshoot. It tries random schedules of requests, and improves the best ones',
  )
  .option('--minutes <n>', 'how long an attack goes on', positive, 10)
  .option('--seed <n>', 'seed of the schedules of an attack', wholeNumber, 1)
  .parse()
const options = program.opts<Options>()

if (options.attack) {
  process.exitCode = (await attackFor(options.minutes, options.seed)) ? 1 : 0
} else {
  const size: Size = { intervals: options.intervals ?? (options.quick ? 20 : 80), quick: options.quick }
  const failed = await measure(options.case?.flat() ?? GOALS, options.seeds, size, options.jobs, options.json)
  process.exitCode = failed ? 1 : 0
}

/** Runs everything, and prints each case once it and all earlier cases are complete. Returns whether something failed. */
async function measure(goals: readonly Goal[], seeds: number, size: Size, jobs: number, json: string | undefined): Promise<boolean> {
  const tasks = tasksOf(goals, seeds, size)
  const results = new Map<string, TaskResult[]>()
  const expected = new Map<string, number>()
  for (const task of tasks) expected.set(caseOf(task), (expected.get(caseOf(task)) ?? 0) + 1)
  const lines: Line[] = []
  const order = [...expected.keys()]
  let title = ''
  let broken = false

  const report = (): void => {
    for (;;) {
      const id = order[0]
      const whole = id === undefined ? undefined : results.get(id)
      if (id === undefined || whole === undefined || whole.length < (expected.get(id) as number)) return
      order.shift()
      const [goalId = '', index = ''] = id.split('/')
      const goal = goalOf(goalId)
      if (title !== goal.id) console.log(titleOf(goal))
      title = goal.id
      const goalCase = goal.cases(size)[Number(index)]
      if (goalCase === undefined) continue
      const judged = linesOf(goal, goalCase, figuresOf(goalCase, whole))
      for (const line of judged) console.log(format(line))
      lines.push(...judged)
      results.delete(id)
    }
  }

  console.log(header())
  await performAll(tasks, jobs, (done) => {
    const { task, result, figures, error } = done
    const id = caseOf(task)
    if (result === undefined && figures === undefined) {
      broken = true
      console.log(`${id}, scenario ${task.scenario}, seed ${task.seed}: ${error}`)
      expected.set(id, (expected.get(id) as number) - 1)
      if (expected.get(id) === 0) order.splice(order.indexOf(id), 1)
    } else {
      results.set(id, [...(results.get(id) ?? []), done])
    }
    report()
  })

  const count = (verdict: Line['verdict']): number => lines.filter((line) => line.verdict === verdict).length
  console.log(
    `\n${count('holds')} of ${lines.length} figures hold, ${count('misses')} miss their goal as documented, ${count('FAILS')} fail.`,
  )
  if (json !== undefined) writeFileSync(json, `${JSON.stringify({ seeds, ...size, node: process.version, lines }, undefined, 2)}\n`)
  return broken || count('FAILS') > 0
}

function figuresOf({ judge, measure }: GoalCase, results: readonly TaskResult[]) {
  if (measure !== undefined) return worst(results.map(({ figures = [] }) => figures))
  return judge(results.flatMap(({ result }) => result ?? []))
}

function caseOf(task: Task): string {
  return `${task.goal}/${task.case}`
}

function chosen(id: string): readonly Goal[] {
  const goals = GOALS.filter((goal) => goal.id === id || ALL[id]?.test(goal.id))
  if (goals.length === 0) throw new InvalidArgumentError('There is no such goal; --help lists them.')
  return goals
}

function idsOf(goals: readonly Goal[]): string {
  return goals.map(({ id }) => id).join(' ')
}
