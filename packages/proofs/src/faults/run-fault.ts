import { until } from '@weir/tooling/redis-servers'
import { booksOf, differenceOf } from './books.ts'
import type { Fault } from './catalog.ts'
import { Clients, type Rates } from './clients.ts'
import { type RemoteNode, renewAll } from './fleet.ts'
import { allowedOf, certainOvershootOf, debtOf, type Overshoot, overshootOf, type Verdict, verdictOf } from './judge.ts'
import { monotonic, type Rule, sleep, type Target } from './protocol.ts'
import type { Stage } from './servers.ts'

export interface RunOptions {
  readonly seed: number
  /** Milliseconds of load without the fault, for comparison. */
  readonly before: number
  /** Milliseconds of load after the processes are synced again. */
  readonly after: number
  /** The part of the fault's usual length. */
  readonly scale?: number
  /** Differences in the enforced policy. A bucket's overshoot is its debt. */
  readonly rule?: Pick<Rule, 'coordination' | 'failMode' | 'bucket'>
}

/** The effect of one fault on the clients. */
export interface FaultResult {
  readonly name: string
  readonly calm: Verdict
  readonly faulty: Verdict
  readonly calmOvershoot: Overshoot
  readonly overshoot: Overshoot
  /**
   * Milliseconds from the moment at which the store accepted writes again until the last process was synced. Undefined if no
   * process noticed the fault.
   */
  readonly syncedAfter: number | undefined
  /** The number of changes to `failMode`, of all processes. */
  readonly degradations: number
  readonly causes: readonly string[]
  readonly lost: number
  readonly doubled: number
  readonly immortals: readonly string[]
  /** Milliseconds that the slowest process took to close. */
  readonly closing: number
}

/** One key gets requests for half its limit, another one for three times its limit. */
export const LIMIT = 100
export const INTERVAL = 2_000
/** Leases that never allow more than the limit while the store is down. */
export const LEASES = { coordination: 'leased', failMode: 'closed' } as const
const RATES: Rates = { steady: 25, greedy: 150 }
let runs = 0

/** Causes one fault while requests reach all processes. */
export async function runFault(fault: Fault, stage: Stage, nodes: readonly RemoteNode[], options: RunOptions): Promise<FaultResult> {
  const namespace = `fault-${process.pid}-${++runs}`
  const rule: Rule = {
    namespace,
    target: reached(stage.target, fault.rule),
    limit: LIMIT,
    interval: INTERVAL,
    spans: 4,
    ...fault.rule,
    ...options.rule,
  }
  if (fault.boot) await fault.begin(stage)
  await renewAll(nodes, rule)
  if (!fault.boot) await Promise.all(nodes.map((node) => node.synced()))

  const clients = new Clients(nodes, RATES, options.seed)
  // The first requests compile the frameworks, so they are not judged.
  await sleep(1_000)
  const begun = monotonic()
  if (!fault.boot) await sleep(options.before)
  const struck = monotonic()
  if (!fault.boot) await fault.begin(stage)
  await sleep(fault.lasts * (options.scale ?? 1))
  await fault.end(stage, nodes)
  const ended = monotonic()
  await Promise.all(nodes.map((node) => node.synced()))
  await sleep(options.after)
  const calmFrom = fault.boot ? monotonic() : begun
  if (fault.boot) await sleep(options.before)
  const calmTo = fault.boot ? Number.POSITIVE_INFINITY : struck
  await clients.stop()

  const closed = await Promise.all(nodes.map((node) => node.ask({ type: 'close' })))
  const states = nodes.flatMap(({ states }) => states)
  const storeUp = states.filter(({ state, at }) => state === 'storeUp' && at > struck)
  const allowed = allowedOf(clients.seen)
  const books = booksOf(stage)
  await until(async () => sum(await books.booked(namespace)) >= sum(allowed), 'all counts are in the store', 2_000).catch(() => {})
  const difference = differenceOf(allowed, await books.booked(namespace))
  const offset = Date.now() - monotonic()
  const judge = rule.bucket ? debtOf : rule.coordination === 'leased' ? certainOvershootOf : overshootOf
  const calm = clients.seen.filter(({ sent }) => sent >= calmFrom && sent < calmTo)
  return {
    name: fault.name,
    calm: verdictOf(calm),
    faulty: verdictOf(clients.seen, fault.boot ? begun : struck, fault.boot ? calmFrom : Number.POSITIVE_INFINITY),
    calmOvershoot: judge(calm, rule, offset),
    overshoot: judge(clients.seen, rule, offset),
    syncedAfter: storeUp.length === 0 ? undefined : Math.max(0, ...storeUp.map(({ at }) => at - ended)),
    degradations: states.filter(({ state }) => state === 'storeDown').length,
    causes: [...new Set(states.flatMap(({ cause }) => (cause === undefined ? [] : [cause])))],
    ...difference,
    immortals: await books.immortals(namespace),
    closing: Math.max(...closed.map(({ took }) => took ?? 0)),
  }
}

function reached(target: Target, rule: Partial<Rule> | undefined): Target {
  if (rule?.unresolved === undefined || typeof target !== 'object' || !('port' in target)) return target
  return { ...target, host: rule.unresolved }
}

function sum(values: ReadonlyMap<string, number>): number {
  let total = 0
  for (const value of values.values()) total += value
  return total
}
