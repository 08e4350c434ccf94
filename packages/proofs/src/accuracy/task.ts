import { type SimulationResult, simulate } from '@weir/testing'
import type { Figure, Goal, Size } from './goal.ts'
import { GOALS } from './goals.ts'

/** One scenario with one seed. Scenarios contain functions, so other processes receive only its place among the goals. */
export interface Task {
  readonly goal: string
  readonly case: number
  readonly scenario: number
  readonly seed: number
  readonly size: Size
}

export interface TaskResult {
  readonly task: Task
  readonly result?: SimulationResult
  /** The figures of a case that measures without a scenario. */
  readonly figures?: readonly Figure[]
  readonly error?: string
}

export function goalOf(id: string): Goal {
  const goal = GOALS.find((candidate) => candidate.id === id)
  if (goal === undefined) throw new Error(`There is no goal ${id}`)
  return goal
}

/** All tasks of some goals, in the order of the report. */
export function tasksOf(goals: readonly Goal[], seeds: number, size: Size): readonly Task[] {
  return goals.flatMap((goal) =>
    goal
      .cases(size)
      .flatMap(({ scenarios, measure }, index) =>
        (measure === undefined ? scenarios : [undefined]).flatMap((_, scenario) =>
          Array.from({ length: seeds }, (_none, seed) => ({ goal: goal.id, case: index, scenario, seed: seed + 1, size })),
        ),
      ),
  )
}

export async function perform(task: Task): Promise<TaskResult> {
  const goalCase = goalOf(task.goal).cases(task.size)[task.case]
  const scenario = goalCase?.scenarios[task.scenario]
  try {
    if (goalCase?.measure !== undefined) return { task, figures: await goalCase.measure(task.seed) }
    if (scenario === undefined) return { task, error: 'There is no such scenario' }
    return { task, result: await simulate({ ...scenario, seed: task.seed }) }
  } catch (error) {
    return { task, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
}
