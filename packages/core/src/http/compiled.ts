import type { RequestPolicyOptions } from '../decide/policy.ts'
import type { WeirError } from '../report/errors.ts'
import type { Patience } from '../report/user-function.ts'
import type { AdapterSide } from '../throttler/adapter-side.ts'
import type { AdapterOptions } from './adapter-options.ts'
import { HeaderWriter } from './answer/headers.ts'
import type { RequestReader } from './request/reader.ts'
import { Rules } from './request/rules.ts'
import type { Reservations } from './reservations.ts'

/** A guard's preparation of its throttler's policies. It is made again after an `update`. */
export interface Compiled<Req> {
  /** The version of the throttler's policies that it was made from. */
  readonly version: number
  readonly rules: Rules<Req>
  readonly headers: HeaderWriter
  /** Whether some policy delays allowed requests to keep a pace. */
  readonly holds: boolean
  /** Whether requests of some policy use slots until they end. */
  readonly slots: boolean
}

/** @param which returns whether the guard uses a policy with this name */
export function compile<Req, Args extends readonly unknown[], Name extends string>(
  side: AdapterSide<Name, Req>,
  options: AdapterOptions<Req, Args, Name>,
  reader: RequestReader<Req>,
  patience: Patience,
  which: (policy: string) => boolean,
  reservations: Reservations<Req, Args, Name> | undefined,
): Compiled<Req> {
  const { version, clock, policies, rules } = side
  const own = policies.filter(({ name }) => which(name))
  // Every policy of an adapter's throttler has a key.
  const keyed = rules as readonly RequestPolicyOptions<Req, Name>[]
  const report = (error: WeirError, subject: string) => side.warn(error, subject)
  return {
    version,
    rules: new Rules(
      reservations?.rules(keyed) ?? keyed,
      reader,
      { ...options, report, patience },
      own.map((policy) => policies.indexOf(policy)),
    ),
    headers: new HeaderWriter(
      policies.filter(({ candidate: next }) => !next),
      options.headers,
      clock,
    ),
    holds: options.dryRun !== true && own.some(({ algorithm, dryRun }) => algorithm.delay !== undefined && !dryRun),
    slots: own.some(({ algorithm }) => algorithm.slots !== undefined),
  }
}
