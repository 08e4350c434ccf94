/** The folder of a small local algorithm, `src/algorithms/resting-window`: windows that begin with a key's first request. */
export const FOLDER: Readonly<Record<string, string>> = {
  'index.ts': `
import { checkAlgorithmOptions } from '../../report/names.ts'
import type { Algorithm } from '../algorithm.ts'
import { LocalRestingWindow } from './local.ts'
import { RESTING_WINDOW_STEP } from './step.ts'

export function restingWindow(options: object = {}): Algorithm {
  checkAlgorithmOptions('restingWindow', options, [])
  return Object.freeze({
    name: 'restingWindow()',
    id: 'resting-window',
    fields: 2,
    local: (site) => new LocalRestingWindow(site),
    step: RESTING_WINDOW_STEP,
  } satisfies Algorithm)
}
`,
  'local.ts': `
import type { Ordinal } from '../../time/intervals.ts'
import { LocalMeter } from '../local-meter.ts'

/** For each key: the units of its last window, and when that began. */
export class LocalRestingWindow extends LocalMeter {
  protected override hasCapacity(slot: number, cost: number, limit: number, now: number): boolean {
    return limit > 0 && cost <= limit - this.#used(slot, now)
  }

  protected override count(slot: number, cost: number, _limit: number, now: number): void {
    const used = this.#used(slot, now)
    if (used === 0) this.fields[slot * 2 + 1] = now
    this.fields[slot * 2] = Math.min(Number.MAX_SAFE_INTEGER, used + cost)
    this.site.movedTo(Math.floor(now) as Ordinal)
  }

  over(slot: number, now: number): number {
    return Math.max(0, this.#used(slot, now) - this.site.limitOf(slot))
  }

  protected override left(slot: number, limit: number, now: number): number {
    return Math.max(0, limit - this.#used(slot, now))
  }

  protected override wait(slot: number, _cost: number, _limit: number, now: number): number {
    return this.resetAfterMs(slot, now) || this.site.policy.interval
  }

  override resetAfterMs(slot: number, now: number): number {
    return this.#used(slot, now) > 0 ? this.site.policy.interval - (now - (this.fields[slot * 2 + 1] as number)) : 0
  }

  protected override giveBack(slot: number, takenAt: Ordinal, units: number, _limit: number, now: number): void {
    const used = this.#used(slot, now)
    if (used > 0 && takenAt >= Math.floor(this.fields[slot * 2 + 1] as number)) this.fields[slot * 2] = Math.max(0, used - units)
  }

  #used(slot: number, now: number): number {
    const since = now - (this.fields[slot * 2 + 1] as number)
    // A request that comes at the end of its retry time must fit, though differences of times are rounded.
    return since < this.site.policy.interval - 2e-6 ? (this.fields[slot * 2] as number) : 0
  }
}
`,
  'step.ts': `

import type { MeterPolicy } from '../meter.ts'
import type { Step, Verdict } from '../step.ts'

/** The state is the units of a window, and when it began. */
export const RESTING_WINDOW_STEP: Step = Object.freeze({
  id: 'resting-window',

  sinceStart: true,

  parameters: ({ interval }: MeterPolicy) => [interval],

  take(state: number[], now: number, cost: number, limit: number, [interval = 0]: readonly number[]): Verdict {
    const used = usedAt(state, now, interval)
    const allowed = limit > 0 && cost <= limit - used
    if ((state[1] ?? now) > now) state[1] = now
    if (allowed && cost > 0) count(state, now, used, cost)
    const after = allowed ? used + cost : used
    const rest = used > 0 ? interval - (now - (state[1] ?? now)) : interval
    return {
      allowed,
      remaining: Math.max(0, limit - after),
      resetAfterMs: after > 0 ? rest : 0,
      retryAfterMs: allowed ? 0 : cost > limit || limit === 0 ? Number.POSITIVE_INFINITY : rest,
      delayMs: 0,
    }
  },

  add(state: number[], now: number, units: number, _limit: number, [interval = 0]: readonly number[]): void {
    if ((state[1] ?? now) > now) state[1] = now
    count(state, now, usedAt(state, now, interval), units)
  },

  giveBack(state: number[], at: number, units: number, now: number, _limit: number, [interval = 0]: readonly number[]): void {
    const used = usedAt(state, now, interval)
    if (used > 0 && at >= Math.floor(state[1] ?? now)) state[0] = Math.max(0, used - units)
  },

  lifetime(state: readonly number[], now: number, _limit: number, [interval = 0]: readonly number[]): number {
    return usedAt(state, now, interval) > 0 ? interval - Math.max(0, now - (state[1] ?? now)) : 0
  },
})

function usedAt(state: readonly number[], now: number, interval: number): number {
  return now - (state[1] ?? now) < interval ? (state[0] ?? 0) : 0
}

function count(state: number[], now: number, used: number, units: number): void {
  if (used === 0) state[1] = now
  state[0] = Math.min(Number.MAX_SAFE_INTEGER, used + units)
}
`,
}

/** A change of a file that the new algorithm needs. */
interface Line {
  readonly file: string
  readonly find: string
  readonly replace: string
}

const ALL = 'core/src/algorithms/all.ts'

/** The lines of the list of built-in algorithms, for the algorithm and for its step. */
export const REGISTRY: readonly Line[] = [
  {
    file: ALL,
    find: "import { slidingCounter } from './sliding-counter/index.ts'",
    replace: `import { restingWindow } from './resting-window/index.ts'
import { RESTING_WINDOW_STEP } from './resting-window/step.ts'
import { slidingCounter } from './sliding-counter/index.ts'`,
  },
  { file: ALL, find: '  concurrency,\n}', replace: '  concurrency,\n  restingWindow,\n}' },
  { file: ALL, find: "  'bucket-warm-up',\n", replace: "  'bucket-warm-up',\n  'resting-window',\n" },
  {
    file: ALL,
    find: "  'bucket-warm-up': {\n",
    replace: "  'resting-window': { by: () => RESTING_WINDOW_STEP },\n  'bucket-warm-up': {\n",
  },
]

/** The row of the algorithm contract. */
export const ROW: Line = {
  file: 'testing/test/algorithms-keep-the-contract.test.ts',
  find: "keepsTheContract('slidingLog',",
  replace: `keepsTheContract(
  'restingWindow',
  { algorithm: algorithms['restingWindow']?.() as AlgorithmUnderTest['algorithm'], model: (interval) => new FirstRequestModel(interval) },
  runner,
)

keepsTheContract('slidingLog',`,
}
