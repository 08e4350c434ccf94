import { createThrottler, type Receipt } from '@weir/core'
import { input, report } from '../harness/child.ts'
import { zipf } from '../harness/random.ts'
import { median } from '../harness/statistics.ts'

/** Three policies, as of a gateway to language models. */
export interface BudgetsInput {
  readonly figure: 'time' | 'bytes'
  readonly keys: number
  /** Calls of a slice. */
  readonly slice: number
  readonly slices: number
}

/** Nanoseconds, or bytes of the heap, for one call. */
export interface BudgetsResult {
  readonly check: number
  /** With a cost for each policy. */
  readonly checkCosts: number
  readonly reserve: number
  /** The first report of use, and each later one. */
  readonly firstUse: number
  readonly laterUse: number
  readonly settle: number
  /** Median of the ratios of neighbouring slices: `reserve` to `check`. */
  readonly ratio: number
  /** The same, to a check with costs. */
  readonly ratioCosts: number
}

/** The open reservations at a time. */
const OPEN = 500
const { figure, keys, slice, slices } = input<BudgetsInput>()
const limit = 1e15
const throttler = createThrottler({
  policies: [
    { name: 'requests', limit, interval: '1h', coordination: 'local' },
    { name: 'tokens', limit, interval: '1h', coordination: 'local' },
    { name: 'usd', limit, interval: '1h', coordination: 'local' },
  ],
})
const names = Array.from({ length: keys }, (_, id) => `tenant:${id}`)
const ids = zipf(keys, 1.1, 1 << 16)
let at = 0
const nextKey = () => names[ids[at++ & 0xff_ff] as number] as string
const options = { cost: { requests: 1, tokens: 1_500, usd: 12_500 }, ttl: '5m' } as const
const byName = { cost: options.cost }
const first = { tokens: 100 }
const later = Array.from({ length: 10 }, (_, i) => ({ tokens: 200 + i }))
const actual = { tokens: 400, usd: 3_000 }

const isTime = figure === 'time'
const now = isTime ? () => Number(process.hrtime.bigint()) : () => process.memoryUsage().heapUsed

interface Slice {
  check: number
  checkCosts: number
  reserve: number
  firstUse: number
  laterUse: number
  settle: number
}

function check(): void {
  if (!throttler.check(nextKey()).allowed) throw new Error('A check was rejected.')
}

function checkCosts(): void {
  if (!throttler.check(nextKey(), byName).allowed) throw new Error('A check was rejected.')
}

function reserve(): Receipt {
  const receipt = throttler.reserve(nextKey(), options)
  if (!receipt.isOpen) throw new Error('A reservation was rejected.')
  return receipt
}

function run(): Slice {
  const sums: Slice = { check: 0, checkCosts: 0, reserve: 0, firstUse: 0, laterUse: 0, settle: 0 }
  const receipts: Receipt[] = new Array(OPEN)
  for (let done = 0; done < slice; done += OPEN) {
    const times = [now()]
    for (let i = 0; i < OPEN; i++) check()
    times.push(now())
    for (let i = 0; i < OPEN; i++) checkCosts()
    times.push(now())
    for (let i = 0; i < OPEN; i++) receipts[i] = reserve()
    times.push(now())
    for (let i = 0; i < OPEN; i++) (receipts[i] as Receipt).used(first)
    times.push(now())
    for (let i = 0; i < OPEN; i++) for (const chunk of later) (receipts[i] as Receipt).used(chunk)
    times.push(now())
    for (let i = 0; i < OPEN; i++) (receipts[i] as Receipt).settle(actual)
    times.push(now())
    for (const [place, name] of (['check', 'checkCosts', 'reserve', 'firstUse', 'laterUse', 'settle'] as const).entries())
      sums[name] += (times[place + 1] as number) - (times[place] as number)
  }
  return sums
}

// Code that isn't compiled yet allocates more.
for (let i = 0; i < 100; i++) run()
if (!isTime) globalThis.gc?.()
const measured = Array.from({ length: slices }, run)
const of = (name: keyof Slice) => median(measured.map((sums) => sums[name])) / slice
report({
  check: of('check'),
  checkCosts: of('checkCosts'),
  reserve: of('reserve'),
  firstUse: of('firstUse'),
  laterUse: of('laterUse') / later.length,
  settle: of('settle'),
  ratio: median(measured.map((sums) => sums.reserve / sums.check)),
  ratioCosts: median(measured.map((sums) => sums.reserve / sums.checkCosts)),
} satisfies BudgetsResult)
process.exit(0)
