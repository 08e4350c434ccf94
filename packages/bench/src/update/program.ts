import { type AnyPolicyOptions, createThrottler, memoryStore } from '@weir/core'
import { input, report } from '../harness/child.ts'
import { POLICIES, type UpdateKind } from './kinds.ts'

export interface UpdateInput {
  readonly kind: UpdateKind
  readonly keys: number
}

export interface UpdateResult {
  /** Milliseconds of CPU of `update`, and of the longest turn of the event loop afterwards. */
  readonly call: number
  readonly longest: number
  readonly keys: number
}

/** Milliseconds after an update in which turns of the event loop are timed. */
const WATCHED = 300
/** Requests that are made at once while keys are created. */
const AT_ONCE = 1_000
const UPDATES = 9

const { kind, keys } = input<UpdateInput>()
const rule = (limit: number) => [{ name: 'api', limit, ...POLICIES[kind] }] as [AnyPolicyOptions<never>]
const throttler = createThrottler({
  policies: rule(100),
  maxKeys: 2 * keys,
  ...(kind.endsWith('local') ? {} : { store: memoryStore() }),
}).start()
/** CPU time is used instead of the clock's time, in which other processes run as well. */
const cpu = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e3
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
await throttler.checkAsync('first')
await new Promise((resolve) => setTimeout(resolve, 200))
for (let i = 0; i < keys; i += AT_ONCE) {
  if (kind.endsWith('leased')) await Promise.all(Array.from({ length: AT_ONCE }, (_, j) => throttler.checkAsync(`key ${i + j}`)))
  else {
    for (let j = 0; j < AT_ONCE; j++) throttler.check(`key ${i + j}`)
    await turn()
  }
}
await new Promise((resolve) => setTimeout(resolve, 1_000))
const results: Pick<UpdateResult, 'call' | 'longest'>[] = []
for (let update = 1; update <= UPDATES; update++) {
  const begun = performance.now()
  const started = cpu()
  throttler.update(rule(100 + update) as never)
  const call = cpu() - started
  let longest = 0
  for (let last = cpu(); performance.now() - begun < WATCHED; ) {
    await turn()
    const now = cpu()
    longest = Math.max(longest, now - last)
    last = now
  }
  results.push({ call, longest })
}
const median = (of: (result: (typeof results)[number]) => number): number => results.map(of).sort((a, b) => a - b)[UPDATES >> 1] as number
report({ call: median(({ call }) => call), longest: median(({ longest }) => longest), keys } satisfies UpdateResult)
process.exit(0)
