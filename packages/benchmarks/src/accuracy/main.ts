import { writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { attackFor } from './attack/program.ts'
import { type Goal, type GoalCase, type Size, worst } from './goal.ts'
import { GOALS } from './goals.ts'
import { format, header, type Line, linesOf, titleOf } from './report.ts'
import { goalOf, type Task, type TaskResult, tasksOf } from './task.ts'
import { performAll } from './workers.ts'

const USAGE = `Measures what Weir promises of its accuracy, by simulated clusters of the code that ships.

  pnpm accuracy [--case ID]... [--seeds N] [--intervals N] [--json FILE] [--quick] [--jobs N]
  pnpm accuracy --attack [--minutes N] [--seed N]

  --case ID      one goal only: 1 to 22, S1 to S15, N1 to N10, B2 to B20, L1 to L7, or "fixed", "sliding", "bucket" or "leases"; may be
                 repeated
  --seeds N      runs of each scenario, with the seeds 1 to N (default 1)
  --intervals N  measured intervals of each run (default 80)
  --json FILE    writes all figures
  --quick        fewer intervals and combinations
  --jobs N       processes (default: one for each core)

  --attack       looks for traffic that gets more through than the documentation says: random schedules of
                 requests, and from the best of them on to ones that get further
  --minutes N    how long (default 10)
  --seed N       what the schedules follow from (default 1)`

const { values } = parseArgs({
  options: {
    case: { type: 'string', multiple: true },
    seeds: { type: 'string', default: '1' },
    intervals: { type: 'string' },
    json: { type: 'string' },
    quick: { type: 'boolean', default: false },
    jobs: { type: 'string', default: String(availableParallelism()) },
    attack: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  console.log(USAGE)
} else if (values.attack) {
  process.exitCode = (await attackFor(positive(values.minutes, '--minutes'), whole(values.seed, '--seed'))) ? 1 : 0
} else {
  const size: Size = {
    intervals: values.intervals === undefined ? (values.quick ? 20 : 80) : whole(values.intervals, '--intervals'),
    quick: values.quick,
  }
  const failed = await measure(chosen(values.case), whole(values.seeds, '--seeds'), size, whole(values.jobs, '--jobs'), values.json)
  process.exitCode = failed ? 1 : 0
}

/** Runs everything, prints each case when it and those before it are whole. Returns whether something failed. */
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

  const held = lines.filter((line) => line.holds).length
  console.log(`\n${held} of ${lines.length} figures hold.`)
  if (json !== undefined) writeFileSync(json, `${JSON.stringify({ seeds, ...size, node: process.version, lines }, undefined, 2)}\n`)
  return broken || held < lines.length
}

function figuresOf({ judge, measure }: GoalCase, results: readonly TaskResult[]) {
  if (measure !== undefined) return worst(results.map(({ figures = [] }) => figures))
  return judge(results.flatMap(({ result }) => result ?? []))
}

function caseOf(task: Task): string {
  return `${task.goal}/${task.case}`
}

function chosen(ids: readonly string[] | undefined): readonly Goal[] {
  if (ids === undefined) return GOALS
  return ids.flatMap((id) => {
    if (id === 'fixed') return GOALS.filter((goal) => /^\d/.test(goal.id))
    if (id === 'leases') return GOALS.filter((goal) => goal.id.startsWith('L'))
    if (id === 'sliding') return GOALS.filter((goal) => goal.id.startsWith('S'))
    if (id === 'bucket') return GOALS.filter((goal) => goal.id.startsWith('B'))
    return [goalOf(id)]
  })
}

function positive(text: string, option: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`${option} is ${text}; it must be a number greater than 0`)
  return value
}

function whole(text: string, option: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new Error(`${option} is ${text}; it must be a whole number of at least 1`)
  return value
}
