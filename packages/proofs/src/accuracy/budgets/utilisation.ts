import { type LearnedEstimate, learnedEstimate, tokenBucket } from '@weir/core'
import { atLeast, atMost, type Figure, percent } from '../goal.ts'
import { BudgetCluster, type Process } from './cluster.ts'

/** Tokens per minute. */
const LIMIT = 300_000
const INTERVAL = 60_000
const PROCESSES = 4
/** Tokens of input, the mean of output, and the most output, which calls reserve if nothing else is known: four times the real use. */
const INPUT = 200
const OUTPUT = 1_000
const MAX = 4 * (INPUT + OUTPUT) - INPUT
/** Milliseconds for a token of output. */
const PACE = 30
/** Calls are offered for this multiple of the limit. */
const TIMES = 1.5

/**
 * The ways in which calls reserve tokens.
 * - `'never settled'`: the maximum, which counts in full.
 * - `'settled'`: the maximum, of which the unused part returns.
 * - `'learned'`: as much as four of five earlier calls used, and settled.
 */
export const WAYS = ['never settled', 'settled', 'learned'] as const

/** The least parts of the limit that are used, in percent. Only the goal of learned estimates was set before. */
const LEAST = {
  bucket: { 'never settled': 20, settled: 75, learned: 95 },
  window: { 'never settled': 20, settled: 50, learned: 95 },
} as const

/**
 * Calls of a language model that stream for 30 s on average, at one and a half times the limit. Returns the tokens that they really used,
 * as a part of the limit.
 */
export async function utilisation(
  way: (typeof WAYS)[number],
  algorithm: 'bucket' | 'window',
  minutes: number,
  seed: number,
): Promise<readonly Figure[]> {
  const policy = {
    name: 'tokens',
    limit: LIMIT,
    interval: INTERVAL,
    coordination: 'central',
    failMode: 'closed',
    ...(algorithm === 'bucket' && { algorithm: tokenBucket() }),
  } as const
  const cluster = await BudgetCluster.start([policy], PROCESSES, seed)
  const random = cluster.random.stream('calls')
  const estimates = new Map<Process, LearnedEstimate>(
    cluster.processes.map((process) => [process, learnedEstimate({ underageCost: 4, overageCost: 1, maxOutput: MAX })]),
  )
  // The first minutes use up the bucket and teach the estimates.
  const [from, until] = [5 * INTERVAL, (5 + minutes) * INTERVAL]
  const used = new Array<number>(minutes + 6).fill(0)
  for (let at = 0; at < until; at += (random.exponential() * INTERVAL * (INPUT + OUTPUT)) / (TIMES * LIMIT)) {
    await cluster.to(at)
    const process = cluster.processes[random.below(PROCESSES)] as Process
    const estimate = estimates.get(process) as LearnedEstimate
    const output = outputOf(random.next())
    const tokens = way === 'learned' ? estimate.estimate('model', { input: INPUT, max: MAX }) : INPUT + MAX
    void cluster.reserve(process, 'key', { cost: { tokens } }).then((call) => {
      if (!call.allowed) return
      const minute = Math.floor(cluster.time.now / INTERVAL)
      used[minute] = (used[minute] as number) + INPUT + output
      if (way === 'never settled') return
      cluster.time.at(cluster.time.now + PACE * output, () => {
        call.settle({ tokens: INPUT + output })
        estimate.learn('model', output)
      })
    })
  }
  cluster.stop()
  const whole = used.slice(from / INTERVAL, until / INTERVAL)
  const total = whole.reduce((sum, tokens) => sum + tokens, 0)
  return [
    atLeast('used of the limit', percent(total / (LIMIT * whole.length)), LEAST[algorithm][way]),
    atMost('used of the limit, in the fullest minute', percent(Math.max(...whole) / LIMIT), algorithm === 'bucket' ? 200 : 130),
  ]
}

/** A length of output by a random number. Most are short, and some are as long as allowed. */
function outputOf(draw: number): number {
  return Math.max(1, Math.min(MAX, Math.round(-Math.log(1 - draw) * OUTPUT)))
}
