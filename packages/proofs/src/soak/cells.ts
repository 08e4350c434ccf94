import {
  type AnyPolicyOptions,
  concurrency,
  escalating,
  fixedWindow,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@weir/core'

/** Length of an interval of virtual time, in milliseconds. */
export const INTERVAL = 1_000
/** Units of each key. Some of the load's keys send more requests, which are rejected. */
const LIMIT = 2

type Cell = Omit<AnyPolicyOptions, 'limit' | 'interval'>

const central = (algorithm: Cell['algorithm']): Cell => ({ algorithm, coordination: 'central', storeTimeout: 100 }) as Cell

/** Each pair of an algorithm and a coordination, and one with growing cooldowns. */
const CELLS = {
  'fixedWindow background': { coordination: 'background', cooldown: '1s' },
  'fixedWindow background escalating': { coordination: 'background', cooldown: escalating({ base: '1s', max: '8s' }) },
  'slidingWindow background': { algorithm: slidingWindow(), coordination: 'background', cooldown: '1s' },
  'tokenBucket background': { algorithm: tokenBucket(), coordination: 'background', cooldown: '1s' },
  'leakyBucket background': { algorithm: leakyBucket({ burst: 2 }), coordination: 'background' },
  'fixedWindow spans': { coordination: 'periodic', cooldown: '1s' },
  'slidingCounter spans': { algorithm: slidingCounter(), coordination: 'periodic', cooldown: '1s' },
  'fixedWindow leased': { coordination: 'leased' },
  'concurrency leased': { algorithm: concurrency({ maxDuration: '2s' }), coordination: 'leased' },
  'fixedWindow central': { ...central(fixedWindow()), cooldown: '1s' },
  'fixedWindow first-request central': central(fixedWindow({ start: 'first-request' })),
  'slidingWindow central': central(slidingWindow()),
  'slidingCounter central': central(slidingCounter()),
  'tokenBucket central': central(tokenBucket()),
  'leakyBucket central': central(leakyBucket({ burst: 2 })),
  'slidingLog central': central(slidingLog()),
  'fixedWindow local': { coordination: 'local', cooldown: escalating({ base: '1s', max: '8s' }) },
  'fixedWindow first-request local': { algorithm: fixedWindow({ start: 'first-request' }), coordination: 'local' },
  'slidingWindow local': { algorithm: slidingWindow(), coordination: 'local' },
  'slidingCounter local': { algorithm: slidingCounter(), coordination: 'local' },
  'slidingLog local': { algorithm: slidingLog(), coordination: 'local' },
  'tokenBucket local': { algorithm: tokenBucket(), coordination: 'local', cooldown: '1s' },
  'leakyBucket local': { algorithm: leakyBucket({ burst: 2 }), coordination: 'local' },
  'concurrency local': { algorithm: concurrency({ maxDuration: '2s' }), coordination: 'local' },
} as const satisfies Readonly<Record<string, Cell>>

export type CellName = keyof typeof CELLS
export const CELL_NAMES: readonly CellName[] = Object.keys(CELLS) as CellName[]

/** The policy of a cell. */
export function policyOf(cell: CellName): AnyPolicyOptions<never> {
  const { algorithm } = CELLS[cell] as Cell
  const interval = algorithm?.slots === undefined ? { interval: INTERVAL } : {}
  return { name: 'api', limit: LIMIT, ...interval, ...CELLS[cell] } as AnyPolicyOptions<never>
}

/** Whether a cell uses a store. */
export function shares(cell: CellName): boolean {
  return !cell.endsWith(' local')
}

/** Whether requests of a cell may have to wait for the store. */
export function waits(cell: CellName): boolean {
  return / (central|leased)$|^leaky/.test(cell)
}
