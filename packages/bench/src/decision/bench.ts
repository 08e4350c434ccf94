import type { Bench } from '../harness/bench.ts'
import { inTurn, printed, runProgram } from '../harness/programs.ts'
import { type Report, type Row, round } from '../harness/report.ts'
import { spread } from '../harness/statistics.ts'
import { instructionsOf } from './instructions.ts'
import type { DecisionInput, DecisionResult } from './program.ts'

const SIZES = [1, 1000, 100_000, 1_000_000]
/** The measured listeners, each compared with the same throttler without listeners. The first pair shows the noise. */
const LISTENERS = [
  ['weir', 'weir'],
  ['weir, listener to throttled', 'weir'],
  ['weir, listeners to all events', 'weir'],
  ['weir, diagnostics_channel', 'weir'],
  ['weir, logger', 'weir'],
  ['weir, cooldown, listener to blocked', 'weir, cooldown'],
] as const
const ALGORITHMS = [
  'weir, slidingWindow()',
  'weir, slidingCounter()',
  "weir, fixedWindow({ start: 'first-request' })",
  'weir, tokenBucket()',
  'weir, tokenBucket({ warmUp })',
  'weir, leakyBucket()',
  'weir, slidingLog()',
]
/** Contenders for comparison: a log as plain as the floor, which shows the cost of the algorithm itself, and buckets of peers. */
const BESIDE = ['plain log', 'limiter', 'rate-limiter-flexible, burst']
const PEERS = ['express-rate-limit', '@fastify/rate-limit', 'koa-ratelimit', 'rate-limiter-flexible', '@nestjs/throttler']

/** Nanoseconds for a decision, and their ratio to the plain window in the same process. */
export const decision: Bench = async ({ rounds, quick }) => {
  const situations: DecisionInput[] = []
  const slices = quick ? 11 : 31
  const add = (contender: string, keys: number, strings: 'cached' | 'fresh', outcome: 'allow' | 'reject', slice: number) =>
    situations.push({ contender, keys, strings, outcome, slice, slices })
  for (const keys of quick ? SIZES.slice(0, 3) : SIZES) {
    for (const strings of ['cached', 'fresh'] as const) {
      add('weir', keys, strings, 'allow', 100_000)
      add('weir', keys, strings, 'reject', 100_000)
    }
    add('weir, three levels', keys, 'cached', 'allow', 50_000)
    add('weir, three levels', keys, 'cached', 'reject', 50_000)
    add('weir with a store', keys, 'cached', 'allow', 100_000)
  }
  for (const algorithm of ALGORITHMS) add(algorithm, 1000, 'cached', 'allow', 50_000)
  for (const peer of BESIDE) add(peer, 1000, 'cached', 'allow', 20_000)
  for (const peer of PEERS) add(peer, 1000, 'cached', 'allow', 20_000)
  for (const peer of PEERS) add(peer, 1000, 'cached', 'reject', 20_000)

  const results = await inTurn(situations, rounds, (situation) => runProgram<DecisionResult>('decision', situation))
  const rows: Row[] = []
  const goals: { what: string; value: number; most: number }[] = []
  for (const [{ contender, keys, strings, outcome }, list] of results) {
    const ratio = spread(list.map((result) => result.ratio))
    const cpuRatio = spread(list.map((result) => result.cpu / result.floorCpu)).median
    rows.push({
      contender,
      keys,
      strings,
      outcome,
      'ns wall': round(spread(list.map(({ wall }) => wall)).median),
      'ns CPU': round(spread(list.map(({ cpu }) => cpu)).median),
      'plain window ns': round(spread(list.map(({ floor }) => floor)).median),
      ratio: round(ratio.median),
      'min–max': `${round(ratio.min)}–${round(ratio.max)}`,
      'ratio of CPU': round(cpuRatio),
    })
    const most = contender === 'weir' ? 1.1 : contender === 'weir, three levels' ? 2.5 : ALGORITHMS.includes(contender) ? 1.5 : undefined
    if (most !== undefined) goals.push({ what: `${contender}, ${keys} keys, ${strings}, ${outcome}`, value: ratio.median, most })
  }
  const counted = quick ? [] : await instructionsOf(ALGORITHMS, 1.5, [...BESIDE, ...PEERS])
  return [{ title: 'One decision', rows, goals }, ...counted, await heard(rounds, slices), await retained(), await deoptimised()]
}

/** The cost of listeners, each compared with a throttler without listeners in the same process. */
async function heard(rounds: number, slices: number): Promise<Report> {
  const situations = LISTENERS.flatMap(([contender, floor]) =>
    (['allow', 'reject'] as const).map((outcome): DecisionInput => {
      return { contender, keys: 1000, strings: 'cached', outcome, slice: 100_000, slices, floor }
    }),
  )
  const results = await inTurn(situations, rounds, (situation) => runProgram<DecisionResult>('decision', situation))
  const rows = [...results].map(([{ contender, outcome }, list]): Row => {
    const ratio = spread(list.map((result) => result.ratio))
    return {
      contender,
      outcome,
      'ns wall': round(spread(list.map(({ wall }) => wall)).median),
      'without listeners ns': round(spread(list.map(({ floor }) => floor)).median),
      ratio: round(ratio.median),
      'min–max': `${round(ratio.min)}–${round(ratio.max)}`,
    }
  })
  return { title: 'One decision, with somebody who listens', rows, goals: [] }
}

const HOT: DecisionInput = { contender: 'weir', keys: 1000, strings: 'cached', outcome: 'allow', slice: 200_000, slices: 11 }

/** Objects that survive millions of decisions. There must be no more than before. */
async function retained(): Promise<Report> {
  const text = await printed('decision', HOT, { execArgv: ['--trace-gc', '--trace-gc-nvp'] })
  const scavenges = text.split('\n').filter((line) => line.includes('gc=s '))
  const number = (line: string, name: string) => Number(new RegExp(`\\b${name}=([\\d.]+)`).exec(line)?.[1] ?? 0)
  const later = scavenges.slice(Math.floor(scavenges.length / 2))
  const survived = later.reduce((sum, line) => sum + number(line, 'promoted') + number(line, 'new_space_survived'), 0)
  const decisions = (HOT.slices + 4) * HOT.slice
  const value = later.length === 0 ? 0 : survived / (decisions / 2)
  return {
    title: 'Allocations that outlive a decision',
    rows: [{ scavenges: scavenges.length, 'bytes that survived, for each decision': round(value) }],
    goals: [{ what: 'bytes retained for each decision', value, most: 0.1 }],
  }
}

/** Deoptimisations once everything is warm. */
async function deoptimised(): Promise<Report> {
  const rows: Row[] = []
  const goals: { what: string; value: number; most: number }[] = []
  for (const outcome of ['allow', 'reject'] as const) {
    const text = await printed('decision', { ...HOT, outcome }, { execArgv: ['--trace-deopt'] })
    const lines = text.split('\n').filter((line) => line.includes('bailout') || line.includes('deoptimizing'))
    const late = lines.filter((line) => /check|decideOne|reject|allows|PolicyDecision|monotonic/.test(line)).length
    rows.push({ outcome, 'deoptimisations in all': lines.length, 'of the decision, while it warms up': late })
    // During the warm-up, code may be compiled again a few times. Later it must not be.
    goals.push({ what: `deoptimisations of the decision, ${outcome}`, value: late, most: 6 })
  }
  return { title: 'Deoptimisations', rows, goals }
}
