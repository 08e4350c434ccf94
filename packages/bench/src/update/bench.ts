import type { Bench } from '../harness/bench.ts'
import { inTurn, runProgram } from '../harness/programs.ts'
import { type Row, round } from '../harness/report.ts'
import { median } from '../harness/statistics.ts'
import { UPDATE_KINDS } from './kinds.ts'
import type { UpdateInput, UpdateResult } from './program.ts'

/** The time for which `update` with another limit blocks the event loop, during the call and afterwards. */
export const update: Bench = async ({ rounds, quick }) => {
  const results = await inTurn(UPDATE_KINDS, rounds, (kind) => {
    // Fewer keys, because each leased key needs a request to the store.
    const keys = kind.endsWith('leased') ? 100_000 : 1_000_000
    return runProgram<UpdateResult>('update', { kind, keys: quick ? keys / 10 : keys } satisfies UpdateInput)
  })
  const rows = UPDATE_KINDS.map((kind): Row => {
    const found = results.get(kind) as UpdateResult[]
    const of = (part: keyof UpdateResult): number => round(median(found.map((one) => one[part])))
    return { policy: kind, keys: of('keys'), 'ms in update': of('call'), 'ms in the longest turn afterwards': of('longest') }
  })
  return [{ title: 'Another limit for many keys: CPU of the call, and of the longest turn of the event loop after it', rows }]
}
