import type { Bench } from '../harness/bench.ts'
import { inTurn, runProgram } from '../harness/programs.ts'
import { type Report, round } from '../harness/report.ts'
import { median } from '../harness/statistics.ts'
import { ALONE, type AloneName } from './contenders.ts'
import type { CostInput, CostResult } from './cost.ts'
import type { KeysInput, KeysResult } from './keys.ts'
import { central, fairness, floods, levels } from './queue.ts'
import { commands, pace } from './redis.ts'
import { fewSlots } from './slots.ts'
import type { SlowInput, SlowResult } from './slow.ts'

/** The cost of waiting, the wait compared with one central queue, and the accuracy with which processes keep a limit together. */
export const waiting: Bench = async ({ rounds, quick }) => [
  await cost(rounds, quick ? 100_000 : 1_000_000),
  await keys(rounds),
  await slow(rounds),
  await central(quick),
  await fairness(quick),
  await floods(),
  await levels(),
  await fewSlots(quick),
  await pace(quick),
  await commands(quick),
]

/**
 * The slowest contender. It needs more than a quarter of a millisecond for a request, and much more on a busy machine, so a million
 * would take many minutes.
 */
const SLOWEST: AloneName = 'bottleneck'
const MOST_OF_SLOWEST = 20_000

/** Requests that are all made before the first of them may start, so that all of them wait. */
const HELD = 100_000

async function cost(rounds: number, requests: number): Promise<Report> {
  const inputOf = (contender: AloneName, most: number): CostInput => {
    const made = contender === SLOWEST ? Math.min(most, MOST_OF_SLOWEST) : most
    return { contender, requests: made, limit: made / 4 }
  }
  const names = Object.keys(ALONE) as AloneName[]
  const inputs = names.map((contender) => inputOf(contender, requests))
  const held = names.map((contender) => inputOf(contender, Math.min(requests, HELD)))
  const run = (input: CostInput) => runProgram<CostResult>('waiting/cost', input, { execArgv: ['--expose-gc'] })
  const results = await inTurn([...inputs, ...held], rounds, run)
  const of = (input: CostInput, figure: keyof CostResult) => median((results.get(input) as CostResult[]).map((one) => one[figure]))
  const cpu = new Map(inputs.map((input) => [input.contender, of(input, 'cpu')]))
  return {
    title: `${requests} requests that wait for one key, all made at once, a quarter of them each 250 ms`,
    rows: inputs.map((input, i) => ({
      contender: input.contender,
      requests: input.requests,
      'CPU for each, µs': round(cpu.get(input.contender) as number),
      'bytes for each': round(of(held[i] as CostInput, 'bytes')),
    })),
    goals: [
      { what: "CPU for a request, times p-throttle's", value: (cpu.get('weir') as number) / (cpu.get('p-throttle') as number), most: 3 },
    ],
  }
}

async function keys(rounds: number): Promise<Report> {
  const inputs: readonly KeysInput[] = [{ keys: 10_000 }, { keys: 100_000 }]
  const results = await inTurn(inputs, rounds, (input) => runProgram<KeysResult>('waiting/keys', input, { execArgv: ['--expose-gc'] }))
  const of = (input: KeysInput, figure: keyof KeysResult) => median((results.get(input) as KeysResult[]).map((one) => one[figure]))
  return {
    title: 'One request that waits for each of many keys',
    rows: inputs.map((input) => ({
      keys: input.keys,
      'bytes for each': round(of(input, 'bytes')),
      'CPU for each, µs': round(of(input, 'cpu')),
    })),
    goals: inputs.map((input) => ({ what: `bytes for each of ${input.keys} keys`, value: of(input, 'bytes'), most: 1_024 })),
  }
}

async function slow(rounds: number): Promise<Report> {
  const requests = 20_000
  const inputs: readonly SlowInput[] = [
    { contender: 'weir', requests },
    { contender: 'express-slow-down', requests },
  ]
  const results = await inTurn(inputs, rounds, (input) => runProgram<SlowResult>('waiting/slow', input, { execArgv: ['--expose-gc'] }))
  const of = (input: SlowInput, figure: keyof SlowResult) => median((results.get(input) as SlowResult[]).map((one) => one[figure]))
  return {
    title: `${requests} requests that middleware slows down, all made at once`,
    rows: inputs.map((input) => ({
      contender: input.contender,
      'CPU for each, µs': round(of(input, 'cpu')),
      'bytes for each': round(of(input, 'bytes')),
    })),
  }
}
