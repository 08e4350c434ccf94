import { list, number, object, oneOf, optional, type Reader, text, whole } from '../report/readers.ts'
import { REQUEST_REJECTIONS, SLOT, SLOTS } from '../report/requests.ts'
import type { Coordinated } from '../throttler/coordinator.ts'
import { type NodeStatus, POLICY_NUMBERS, POLICY_TEXTS, statusOfAll } from './node-status.ts'
import { RECORDED } from './recent-events.ts'

/** Longest text of a status, in UTF-16 units. If it is longer, first keys are left out, then policies. */
export const LONGEST_STATUS = 8_192
/** Longer keys are left out, because a part of a key can't be blocked or reset. */
const LONGEST_KEY = 257

/** The status of a process, with all its throttlers that share a store, as text. */
export function tellStatus(throttlers: readonly Coordinated[], startedAt: number, now: number): string {
  return formatStatus(statusOfAll(throttlers, startedAt, now))
}

/** A status as text. */
export function formatStatus(status: NodeStatus): string {
  const fits = ({ key }: { readonly key: string }) => key.length <= LONGEST_KEY
  const top = status.top.filter(fits)
  const limited = status.limited.filter(fits)
  const waiting = status.waiting.filter(fits)
  const wouldReject = status.wouldReject.filter(fits)
  const events = status.events.filter(({ key = '' }) => fits({ key }))
  const policies = [...status.policies]
  for (;;) {
    const text = JSON.stringify({ ...status, policies, top, limited, waiting, wouldReject, events })
    if (
      text.length <= LONGEST_STATUS ||
      (events.pop() ?? wouldReject.pop() ?? top.pop() ?? waiting.pop() ?? limited.pop() ?? policies.pop()) === undefined
    )
      return text
  }
}

/**
 * Reads another process's status, for programs that inspect a cluster through its store (`HeartbeatReply.statuses`). Returns undefined if
 * the text is no status, because the process may have another version, and a store's content is not trusted.
 */
export function parseStatus(text: string): NodeStatus | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  readStatus ??= statusReader()
  return readStatus(value)
}

const REASONS = ['limit', 'cooldown', 'blocked', 'storeDown', 'overflow'] as const
const LIMITED_COUNTS = ['rejectedLastMinute', 'rejected'] as const
const LIMITED_AGES = ['sinceFirstMs', 'sinceLastMs'] as const
/** A hundred years, in milliseconds. */
const LONGEST_AGE = 3_155_760_000_000

/** Made when it is first used, so that bundles of programs that read no status don't contain it. */
let readStatus: Reader<NodeStatus> | undefined

function statusReader(): Reader<NodeStatus> {
  const any = text(Infinity)
  const finite = number(-Number.MAX_VALUE, Number.MAX_VALUE)
  const count = number(0, Number.MAX_VALUE)
  const counts = list(SLOTS, count)
  /** A page makes dates from ages, and a larger one would be no date. */
  const age = number(0, LONGEST_AGE)
  /** Processes shorten problems to this length. */
  const short = text(300)
  const version = optional(whole(1, Number.MAX_SAFE_INTEGER))

  return object({
    ...all(['node', 'label', 'state'] as const, any),
    ...all(['uptimeMs', 'storeDownMs', 'roundTripMs', 'failures', 'failuresLastHour', 'clockOffsetMs'] as const, finite),
    requests: object({
      allowed: count,
      rejected: count,
      reasons: object(all(REQUEST_REJECTIONS, count)),
      history: object({ slot: oneOf(SLOT), ended: age, allowed: counts, rejected: counts }),
    }),
    policies: listOf(
      object({
        dryRun: oneOf(true, false),
        ...all(POLICY_TEXTS, any),
        ...all(POLICY_NUMBERS, finite),
        reservations: optional(object({ open: count, units: count })),
      }),
    ),
    top: listOf(object({ policy: any, key: any, used: finite, own: finite, limit: finite })),
    limited: listOf(
      object({
        ...all(['policy', 'key'] as const, any),
        reason: oneOf(...REASONS),
        ...all(LIMITED_COUNTS, count),
        ...all(LIMITED_AGES, age),
      }),
    ),
    waiting: listOf(object({ policy: any, key: any, requests: finite, longest: finite })),
    wouldReject: listOf(object({ policy: any, key: any, rejected: count })),
    events: listOf(
      object({
        name: oneOf(...RECORDED),
        ageMs: age,
        ...all(['policy', 'key', 'cause'] as const, optional(any)),
        ...all(['durationMs', 'count'] as const, optional(count)),
      }),
    ),
    rules: optional(
      object({
        version,
        digest: optional(short),
        from: optional(short),
        rejected: optional(object({ version, problem: short })),
        away: optional(short),
      }),
    ),
  }) as Reader<NodeStatus>
}

function listOf<T>(read: Reader<T>): Reader<readonly T[]> {
  return list(Infinity, read)
}

function all<N extends string, T>(names: readonly N[], read: Reader<T>): { readonly [name in N]: Reader<T> } {
  return Object.fromEntries(names.map((name) => [name, read])) as { [name in N]: Reader<T> }
}
