import type { IncomingMessage } from 'node:http'
import type { Decision } from '@weir/core'
import { createGuard, nodeReader, type Rejection } from '@weir/core/adapter'
import { header } from '@weir/core/http'
import { input, report } from '../harness/child.ts'
import { timed } from '../harness/measure.ts'
import { median } from '../harness/statistics.ts'
import { NORMAL, REQUESTS, type WorstKind } from './requests.ts'

export interface WorstInput {
  readonly kind: WorstKind
  readonly slices: number
}

/** CPU microseconds of one request: medians over slices that alternate. */
export interface WorstResult {
  readonly normal: number
  readonly worst: number
}

const { kind, slices } = input<WorstInput>()
/** Requests of a slice, made before the time is measured: enough for about a millisecond, and more. */
const NORMALS = 1_024
const WORSTS = 32

const { guard: options, path, headers, rejected } = REQUESTS[kind]
const limit = rejected === true ? 1 : 1e12
const guard = createGuard<IncomingMessage, readonly []>({ interval: '1h', limit, ...options(header) }, nodeReader)
guard.throttler.on('warning', () => {})

const requestOf = (url: string, fields: Record<string, string>) =>
  ({
    method: 'GET',
    url,
    headers: { host: 'localhost', accept: 'application/json', ...fields },
    socket: { remoteAddress: '192.0.2.1' },
  }) as unknown as IncomingMessage

// Every request is new, even the normal ones, so that no cached result of an earlier one can be used.
let made = 0
const fresh = (text: string) => text.replaceAll('#', () => String(1_000_000 + made++))
const freshRequests = (count: number, url: string, fields: Readonly<Record<string, string>>) =>
  Array.from({ length: count }, () =>
    requestOf(fresh(url), Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, fresh(value)]))),
  )

let bytes = 0
function serve(requests: readonly IncomingMessage[]): number {
  const { cpu } = timed(() => {
    for (const request of requests) {
      const decision = guard.check(request) as Decision
      if (!decision.allowed) bytes += (guard.reject(request, decision) as Rejection).body.length
    }
  })
  return (cpu * 1e3) / requests.length
}

const normals: number[] = []
const worsts: number[] = []
const warm = Math.ceil(slices / 3)
for (let i = 0; i < warm + slices; i++) {
  const normal = serve(freshRequests(NORMALS, NORMAL.path, NORMAL.headers))
  const worst = serve(freshRequests(WORSTS, path ?? NORMAL.path, headers ?? NORMAL.headers))
  if (i < warm) continue
  normals.push(normal)
  worsts.push(worst)
}
if (rejected === true && bytes === 0) throw new Error('Nothing was rejected')
const result: WorstResult = { normal: median(normals), worst: median(worsts) }
report(result)
process.exit(0)
