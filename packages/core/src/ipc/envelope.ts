import type { Announcement, BlockChange, Decide, StorePolicy, SyncReply, SyncRequest, Verdict } from '../store/contract.ts'
import type { LeaseAsk } from '../store/leases/ask.ts'
import type { CooldownGrowth } from '../time/cooldown-growth.ts'

/** Marks our messages among the user's own. The number changes when an older copy of this package would misread them. */
export const MARK = '@weir/ipc'
export const VERSION = 1

/** The messages between children and their parent. `node` and `id` name the question that is answered. */
export type IpcMessage =
  | { readonly kind: 'request'; readonly node: string; readonly id: number; readonly request: PackedRequest }
  | { readonly kind: 'reply'; readonly node: string; readonly id: number; readonly reply: SyncReply }
  | { readonly kind: 'ask'; readonly node: string; readonly id: number; readonly ask: PackedDecide }
  | { readonly kind: 'verdicts'; readonly node: string; readonly id: number; readonly verdicts: unknown }
  | { readonly kind: 'audit'; readonly node: string; readonly id: number; readonly entry?: string; readonly most: number }
  | { readonly kind: 'audited'; readonly node: string; readonly id: number; readonly entries: unknown }
  | { readonly kind: 'failure'; readonly node: string; readonly id: number; readonly message: string }
  | { readonly kind: 'announcement'; readonly announcement: Announcement }
  | { readonly kind: 'join'; readonly node: string }
  | { readonly kind: 'leave'; readonly node: string }

export interface Envelope {
  readonly [MARK]: number
  readonly message: IpcMessage
}

export function seal(message: IpcMessage): Envelope {
  return { [MARK]: VERSION, message }
}

/**
 * A request without repeated policies, and without values that JSON, the default serialization of the channel, can't represent: `Infinity`
 * is sent as null.
 */
export interface PackedRequest {
  readonly time: number | null
  readonly policies: readonly PackedPolicy[]
  readonly entries: readonly (readonly [
    policy: number,
    key: string,
    cells: readonly number[],
    epoch?: number,
    ask?: boolean,
    lease?: readonly number[],
  ])[]
  readonly blocks: readonly (readonly [
    policy: number,
    key: string,
    kind: BlockChange['kind'],
    remaining: number,
    growth: CooldownGrowth | null,
    epoch?: number,
    manual?: boolean,
  ])[]
  readonly heartbeat: {
    readonly ttl: number
    readonly cursor: string | null
    readonly policies: readonly number[]
    readonly status?: string
    readonly leases?: true
    readonly rules?: string
    readonly watch?: true
  } | null
}

/** Questions about requests: each policy once, and `Infinity` as null. */
export interface PackedDecide {
  readonly sequence: number
  readonly lane?: number
  readonly again?: true
  readonly of?: number
  readonly time: number
  readonly stepped?: true
  readonly policies: readonly (readonly [id: string, step: string, parameters: readonly number[]])[]
  readonly questions: readonly (readonly [
    policy: number,
    key: string,
    kind: string,
    units: number,
    limit: number | null,
    at: number,
    reservation?: readonly [id: number, end: number, units: number, due: number],
  ])[]
}

export function packDecide({ questions, ...rest }: Decide): PackedDecide {
  const policies = [...new Set(questions.map(({ policy }) => policy))]
  return {
    ...rest,
    policies: policies.map(({ id, step, parameters }) => [id, step.id, parameters]),
    questions: questions.map(({ policy, key, kind, units, limit, at, reservation: open }) => {
      const question = [policies.indexOf(policy), key, kind, units, finite(limit), at] as const
      return open === undefined ? question : ([...question, [open.id, open.end, open.units, open.due]] as const)
    }),
  }
}

/** Unpacks the parent's verdicts. The process that sent the request checks them like the verdicts of any store. */
export function unpackVerdicts(given: unknown): readonly Verdict[] {
  if (!Array.isArray(given)) return given as never
  return given.map((one: unknown) => {
    if (!Array.isArray(one)) return one as never
    const [allowed, remaining, resetAfterMs, retryAfterMs, delay] = one as unknown[]
    return { allowed, remaining: remaining ?? Infinity, resetAfterMs, retryAfterMs: retryAfterMs ?? Infinity, delayMs: delay } as Verdict
  })
}

type PackedPolicy = readonly [
  id: string,
  width: number,
  cells: number,
  limit: number | null,
  hot: number | null,
  ttl: number,
  drain?: number | null,
  maxDebt?: number | null,
]

export function pack({ time, entries, blocks, heartbeat }: SyncRequest): PackedRequest {
  const places = new Map<StorePolicy, number>()
  const policies: PackedPolicy[] = []
  const place = (policy: StorePolicy): number => {
    let found = places.get(policy)
    if (found === undefined) {
      const { id, width, cells, limit, hot, ttl, drain, maxDebt = Number.POSITIVE_INFINITY } = policy
      const bucket: [] | [number | null, number | null] = drain === undefined ? [] : [finite(drain), finite(maxDebt)]
      found = policies.push([id, width, cells, finite(limit), finite(hot), ttl, ...bucket]) - 1
      places.set(policy, found)
    }
    return found
  }
  return {
    time: time ?? null,
    policies,
    entries: entries.map(({ policy, key, cells, epoch, ask, lease }) => [
      place(policy),
      key,
      cells.flatMap(({ ordinal, taken, given, rejected = 0, level = 0 }) =>
        policy.drain === undefined ? [ordinal, taken, given] : [ordinal, taken, given, rejected, level],
      ),
      ...(lease === undefined ? rare(epoch, ask) : ([epoch ?? 0, ask === true, packLease(lease)] as const)),
    ]),
    blocks: blocks.map(({ policy, key, kind, remaining, growth, epoch, manual }) => [
      place(policy),
      key,
      kind,
      remaining,
      growth === undefined ? null : { ...growth, max: Math.min(growth.max, Number.MAX_VALUE) },
      ...rare(epoch, manual),
    ]),
    heartbeat: heartbeat ? { ...heartbeat, cursor: heartbeat.cursor ?? null, policies: heartbeat.policies.map(place) } : null,
  }
}

/** The numbers of a lease request, in the order in which they are sent. Then come `due` and `back` of its open reservations. */
export const LEASE_NUMBERS: readonly Exclude<keyof LeaseAsk, 'open'>[] = [
  'ordinal',
  'incarnation',
  'seq',
  'granted',
  'returned',
  'taken',
  'given',
  'cleared',
  'epoch',
  'least',
  'waiting',
  'upTo',
  'limit',
  'nodes',
  'early',
  'lifetime',
]

function packLease(ask: LeaseAsk): number[] {
  const numbers = LEASE_NUMBERS.map((name) => Math.min(ask[name], Number.MAX_SAFE_INTEGER))
  return ask.open === undefined ? numbers : [...numbers, ...ask.open.flatMap(({ due, back }) => [due, back])]
}

/** The last two items of an entry or a block. Most have neither. */
function rare(epoch = 0, flag = false): [] | [epoch: number, flag: boolean] {
  return epoch > 0 || flag ? [epoch, flag] : []
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}
