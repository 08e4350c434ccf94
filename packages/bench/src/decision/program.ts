import { input, report } from '../harness/child.ts'
import { type Time, timedAsync } from '../harness/measure.ts'
import { zipf } from '../harness/random.ts'
import { median } from '../harness/statistics.ts'
import { CONTENDERS, type Contender, keyOf } from './contenders.ts'

/** One contender in one situation. */
export interface DecisionInput {
  readonly contender: string
  readonly keys: number
  readonly strings: 'cached' | 'fresh'
  readonly outcome: 'allow' | 'reject'
  /** Decisions of one slice. */
  readonly slice: number
  readonly slices: number
  /** The contender with which it is compared. Default: the plain window. */
  readonly floor?: string
  /** The number of decisions, without a floor and without reading times, if instructions are counted. */
  readonly alone?: number
}

/** Nanoseconds for one decision, of the contender and of its floor in the same process. Their slices alternate. */
export interface DecisionResult {
  readonly wall: number
  readonly cpu: number
  readonly floor: number
  readonly floorCpu: number
  /** Median of the ratios of neighbouring slices, by wall time. */
  readonly ratio: number
}

const { contender, keys, strings, outcome, slice, slices, floor: floorName = 'plain window', alone } = input<DecisionInput>()
/** The number of draws. It is smaller if a tool counts instructions, because drawing takes long there. */
const DRAWS = alone === undefined ? 1 << 20 : 1 << 14
const limit = outcome === 'allow' ? 1e12 : 1
const named = (name: string): Contender | Promise<Contender> => {
  const make = CONTENDERS[name]
  if (make === undefined) throw new Error(`There is no contender ${name}`)
  return make(limit, alone !== undefined)
}
const names = Array.from({ length: keys }, (_, id) => keyOf(id))
const ids = zipf(keys, 1.1, DRAWS)
const everyId = Uint32Array.from({ length: keys }, (_, id) => id)

const measured = await named(contender)
const floor = await named(floorName)
// Both contenders count every key once. If requests are to be rejected, this uses up the key's only unit.
for (const one of [floor, measured]) {
  const allowed = await one.cached(names, everyId, 0, keys)
  if (allowed !== keys) throw new Error(`${contender} allowed ${allowed} of the first ${keys} requests`)
}

let at = 0
async function run(one: Contender, count: number): Promise<Time> {
  let allowed = 0
  const time = await timedAsync(async () => {
    for (let left = count; left > 0; ) {
      const from = at
      const to = Math.min(DRAWS, from + left)
      const part = strings === 'cached' ? one.cached(names, ids, from, to) : one.fresh(ids, from, to)
      allowed += typeof part === 'number' ? part : await part
      left -= to - from
      at = to === DRAWS ? 0 : to
    }
  })
  const wanted = outcome === 'allow' ? count : 0
  if (allowed !== wanted) throw new Error(`${contender} allowed ${allowed} of ${count} requests instead of ${wanted}`)
  return time
}

if (alone !== undefined) {
  for (let left = alone; left > 0; left -= slice) await run(measured, Math.min(left, slice))
  process.exit(0)
}
for (let i = 0; i < 4; i++) {
  await run(floor, slice)
  await run(measured, slice)
}
const times: Time[] = []
const floors: Time[] = []
for (let i = 0; i < slices; i++) {
  floors.push(await run(floor, slice))
  times.push(await run(measured, slice))
}
const nanoseconds = (list: readonly Time[], kind: 'wall' | 'cpu') => (median(list.map((time) => time[kind])) * 1e6) / slice
const result: DecisionResult = {
  wall: nanoseconds(times, 'wall'),
  cpu: nanoseconds(times, 'cpu'),
  floor: nanoseconds(floors, 'wall'),
  floorCpu: nanoseconds(floors, 'cpu'),
  ratio: median(times.map(({ wall }, i) => wall / (floors[i] as Time).wall)),
}
report(result)
// Stores keep timers, which would keep the process alive.
process.exit(0)
