import Table from 'cli-table3'
import pc from 'picocolors'
import type { Job, Result } from './run.ts'

export interface Row {
  readonly job: Job
  readonly results: readonly Result[]
}

const LONGEST = 110

/** A table of the attempts and their results. Attempts that failed share one row per attack and target unless `all` is true. */
export function tableOf(rows: readonly Row[], all: boolean): string {
  const table = new Table({ head: ['attack', 'target', 'tried', 'result', 'figure'], style: { head: ['cyan'], compact: true } })
  for (const { job, results } of rows) {
    const where = job.store === 'none' ? job.target : `${job.target}, ${job.store}`
    const add = (tried: string, held: boolean, figure: string): void => {
      table.push([job.attack.name, where, shown(tried), held ? pc.green('held') : pc.red('GOT THROUGH'), shown(figure)])
    }
    const held = results.filter((result) => result.held)
    if (all || held.length === 1) for (const { tried, figure } of held) add(tried, true, figure)
    else if (held.length > 1) add(`${held.length} ways`, true, held.find(({ figure }) => figure !== '')?.figure ?? '')
    for (const { tried, figure } of results) if (!results.find((result) => result.tried === tried)?.held) add(tried, false, figure)
  }
  return table.toString()
}

/** Escapes and shortens the text of an attack, so that it can't control the terminal. */
export function shown(text: string, longest: number = LONGEST): string {
  const safe = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"')
  return safe.length > longest ? `${safe.slice(0, longest)}…` : safe
}
