import type { Bench } from '../harness/bench.ts'
import { inTurn, runProgram } from '../harness/programs.ts'
import { type Report, type Row, round } from '../harness/report.ts'
import { median, spread } from '../harness/statistics.ts'
import type { BudgetsInput, BudgetsResult } from './program.ts'
import { type Race, race, WAYS } from './race.ts'

/** Calls that start at the same time, by name. */
const RACES: Readonly<Record<string, Race>> = {
  'the public race, limit 100': { limit: 100, calls: [58, 80, 175, 175, 175].map((tokens) => ({ most: tokens, used: tokens })) },
  '100 calls, limit 2,000': { limit: 2_000, calls: Array.from({ length: 100 }, () => ({ most: 100, used: 25 })) },
}

/** Reservations beside checks: time, bytes, and a race of concurrent calls beside a peer. */
export const budgets: Bench = async ({ rounds, quick }) => {
  return [await times(rounds, quick), await bytes(rounds), await races()]
}

async function times(rounds: number, quick: boolean): Promise<Report> {
  const situations = [1, 1_000].map((keys): BudgetsInput => ({ figure: 'time', keys, slice: 10_000, slices: quick ? 21 : 101 }))
  const results = await inTurn(situations, rounds, (situation) => runProgram<BudgetsResult>('budgets', situation))
  const rows: Row[] = []
  const goals = []
  for (const [{ keys }, list] of results) {
    const of = (figure: keyof BudgetsResult) => round(median(list.map((result) => result[figure])))
    const ratio = spread(list.map((result) => result.ratio))
    rows.push({
      keys,
      'check, ns': of('check'),
      'check with costs, ns': of('checkCosts'),
      'reserve, ns': of('reserve'),
      'first used, ns': of('firstUse'),
      'later used, ns': of('laterUse'),
      'settle, ns': of('settle'),
      'reserve, times check': round(ratio.median),
      'min–max': `${round(ratio.min)}–${round(ratio.max)}`,
      'times check with costs': of('ratioCosts'),
    })
    goals.push({ what: `reserve, times check, ${keys} keys`, value: ratio.median, most: 2.5 })
  }
  return { title: 'One call with three policies, in one process', rows, goals }
}

/** Memory is large enough that nothing is collected between two readings. */
const NO_GC = ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256']

async function bytes(rounds: number): Promise<Report> {
  const situation: BudgetsInput = { figure: 'bytes', keys: 1, slice: 5_000, slices: 5 }
  const results = await inTurn([situation], rounds, (one) => runProgram<BudgetsResult>('budgets', one, { execArgv: NO_GC }))
  const list = results.get(situation) ?? []
  const of = (figure: keyof BudgetsResult) => Math.round(median(list.map((result) => result[figure])))
  return {
    title: 'Bytes of the heap for one call with three policies',
    rows: [
      {
        check: of('check'),
        'check with costs': of('checkCosts'),
        reserve: of('reserve'),
        'first used': of('firstUse'),
        'later used': of('laterUse'),
        settle: of('settle'),
      },
    ],
  }
}

async function races(): Promise<Report> {
  const rows: Row[] = []
  const goals = []
  for (const [name, calls] of Object.entries(RACES)) {
    for (const [way, limiter] of Object.entries(WAYS)) {
      const { first, all } = await race(limiter, calls)
      rows.push({
        race: name,
        limiter: way,
        'calls allowed': first.allowed,
        'tokens used': first.used,
        'above the limit': Math.max(0, first.used - calls.limit),
        'calls allowed, with one retry': all.allowed,
        'tokens used, with it': all.used,
      })
      if (way.includes('reserve'))
        goals.push({ what: `${name}: tokens above the limit`, value: Math.max(0, all.used - calls.limit), most: 0 })
    }
  }
  return { title: 'Concurrent calls of one tenant', rows, goals }
}
