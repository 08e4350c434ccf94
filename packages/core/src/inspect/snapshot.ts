import type { Coordination } from '../algorithms/algorithm.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Block } from '../keys/blocks.ts'
import type { AcquireFailure } from '../queue/acquire-error.ts'
import type { WaitingKey } from '../queue/waits.ts'
import type { RulesStatus } from '../report/rules-status.ts'
import type { ExchangeReason, RejectionReason, RejectionSource, Reservations } from '../report/stats.ts'
import { adapterOf } from '../throttler/adapter-side.ts'
import type { Inspected, StoreStatus } from '../throttler/coordinator.ts'
import type { Throttler } from '../throttler/throttler.ts'
import { type ProcessEvent, recentEvents } from './recent-events.ts'
import { escalating, type RequestsSnapshot, requestsOf } from './requests.ts'
import { Survey } from './survey.ts'

/** A key that is blocked in this process. */
export interface BlockedKey {
  /** Name of the policy. */
  readonly policy: string
  readonly key: string
  /** Milliseconds until the block ends. `Infinity` for a block without an end. */
  readonly remainingMs: number
  /** Cause of the block: `'cooldown'` after the key exceeded its limit, `'manual'` for `throttler.block`. */
  readonly cause: 'cooldown' | 'manual'
}

/** The units that a key has used in the current interval, as far as this process knows. */
export interface KeyUsage {
  readonly policy: string
  readonly key: string
  /** Units used in all processes. */
  readonly used: number
  /** Units used in this process. */
  readonly own: number
  /** The most units that the key can have: the limit, or the size of a bucket. */
  readonly limit: number
}

/** The requests of a key that candidate rules would have rejected in this process. Rarely rejected keys may be missing. */
export interface KeyRejections {
  readonly policy: string
  readonly key: string
  readonly rejected: number
}

/** A key whose requests a policy rejects, in this process. */
export interface LimitedKey {
  readonly policy: string
  readonly key: string
  /** The reason of its last rejection, as far as known. */
  readonly reason: RejectionReason
  readonly rejectedLastMinute: number
  /** Since the process's start. */
  readonly rejected: number
  /** Milliseconds since its first and its last rejection. */
  readonly sinceFirstMs: number
  readonly sinceLastMs: number
}

/** One policy in this process. Sums are since the process's start. */
export interface PolicySnapshot {
  readonly name: string
  /**
   * Units per `intervalMs` for each key. If `intervalMs` is 0, units in flight. The interval of a calendar is the current one, in
   * milliseconds.
   */
  readonly limit: number
  readonly intervalMs: number
  /** The algorithm's id, e.g. `'fixed-window'`. */
  readonly algorithm: string
  /** The most units that a key which was not used for long may take at once: the limit, or the size of a bucket. */
  readonly capacity: number
  readonly coordination: Coordination
  /** Whether rejections are only counted, and no request is rejected (`dryRun`). */
  readonly dryRun: boolean
  /** Keys in the table, and the most that fit. */
  readonly keys: number
  readonly maxKeys: number
  /** Whether the table is full, so that new keys get no record. */
  readonly overflowing: boolean
  /** Blocked keys. Blocks that have just ended may still be included. */
  readonly blocked: number
  /** Allowed units. Units of cancelled requests are not included. */
  readonly allowed: number
  /** Rejected requests. */
  readonly rejected: number
  /** Rejected requests by reason and source. Combinations without a request are left out. */
  readonly rejections: readonly { readonly reason: RejectionReason; readonly source: RejectionSource; readonly count: number }[]
  /** Key writes, by reason. */
  readonly exchanges: Readonly<Record<ExchangeReason, number>>
  /** Blocks that began, by cause. */
  readonly blocks: Readonly<Record<'exceeded' | 'manual' | 'remote', number>>
  /** Units of requests in flight in this process, of all keys (`concurrency()`). 0 for other algorithms. */
  readonly inFlight: number
  /** Reservations that this process made (`throttler.reserve`): the open ones and their units, and how the others have ended. */
  readonly reservations: Readonly<Reservations>
  /** Requests that wait for this policy in this process, with `acquire` or during a delay. */
  readonly waiting: number
  /** Milliseconds that the first of these requests has waited. 0 if no request waits. */
  readonly longestWaitMs: number
  /** Own units that the store has not received yet. */
  readonly unsynced: number
  /** Milliseconds since the oldest unsynced unit may have been counted, without keys far below their limit. */
  readonly unsyncedAgeMs: number
  /** Units of all keys that this process has leased ahead of requests, with coordination `'leased'`. 0 for others. */
  readonly leased: number
  /**
   * Estimate of the most by which any key exceeds its limit, as a part of the limit. It adds to the known units, for every other process,
   * as many as this process has not sent yet. 0 while no key can exceed its limit, and with coordination `'leased'`.
   */
  readonly overshoot: number
  /**
   * The most by which a key's confirmed counts exceeded its limit in the last hour, as a part of the limit. Charged units are included,
   * and units from before a key's limit was lowered. 0 with coordination `'leased'`, `'central'` and `'local'`.
   */
  readonly measuredOvershoot: number
  /**
   * Units by which the fullest bucket of a key exceeds its size. They were allowed before the processes knew each other's counts, or were
   * charged. The key rejects requests until they have drained. 0 for other algorithms.
   */
  readonly debt: number
  /** This process's part of the units of keys that were synced, from 0 to 1. 1 divided by the number of processes if there are none. */
  readonly share: number
}

/** The state of a process at one moment. */
export interface Snapshot extends StoreStatus {
  /** The process's id. */
  readonly node: string
  /** The state, as in `throttler.state`. */
  readonly state: string
  /**
   * The trigger of syncs: the process's own `'timers'`, or, as in Cloudflare Workers, only the `'requests'`. Without requests nothing is
   * synced there.
   */
  readonly drivenBy: 'timers' | 'requests'
  readonly requests: RequestsSnapshot
  readonly policies: readonly PolicySnapshot[]
  /** Blocked keys, most time left first. Their number is limited by `SnapshotOptions`. */
  readonly blocked: readonly BlockedKey[]
  /** The keys with the most units of each policy, most used first. */
  readonly top: readonly KeyUsage[]
  /**
   * The most rejected keys of each policy, at most `top` per policy, those with most rejections in the last minute first. Dry runs and
   * candidate rules are included: their policies are marked. Keys without a rejection for long may be missing. Times are exact to 15 s.
   */
  readonly limited: readonly LimitedKey[]
  /** The keys that requests wait for in this process, longest wait first, at most `top`. */
  readonly waiting: readonly WaitingKey[]
  /** Waiting requests that were not allowed, by reason, since the process's start. */
  readonly waitFailures: Readonly<Record<AcquireFailure, number>>
  /** The keys that candidate rules (`next` of the document) would have rejected most often, at most `top` per policy. */
  readonly wouldReject: readonly KeyRejections[]
  /**
   * The newest changes of state, newest first, at most 20. They are recorded from the first call of `snapshot` or of another function that
   * reads the state.
   */
  readonly events: readonly ProcessEvent[]
  /** The rules that the process follows (`follow` of `@weir/core/rules`). Undefined if it follows none. */
  readonly rules: RulesStatus | undefined
}

/** Options of `snapshot`. */
export interface SnapshotOptions {
  /**
   * Limits how many of the most used keys of each policy are listed.
   *
   * It also limits how many rejected keys of each policy, and how many keys that requests wait for, are listed.
   *
   * @default 10
   */
  readonly top?: number
  /**
   * Limits how many blocked keys of each policy are listed, the newest first.
   *
   * @default 100
   */
  readonly blocked?: number
  /**
   * Lists only blocked keys that contain this text. Up to 10,000 of each policy are searched.
   *
   * @default none: all blocked keys
   */
  readonly contains?: string
}

/** The most blocks of each policy that one snapshot reads. */
const BLOCKS_LOOKED_AT = 10_000

/** The progress of the walks through large tables. */
const surveys = new WeakMap<Limiter, Survey>()

/** The state of the store in a snapshot without a store. */
const NO_STORE: StoreStatus = Object.freeze({
  storeDownMs: 0,
  nodes: 1,
  sync: {
    exchanges: 0,
    failures: 0,
    failuresLastHour: 0,
    failuresByCause: { timeout: 0, unavailable: 0, reply: 0, rejected: 0 },
    entries: 0,
    lastDurationMs: 0,
    lastError: undefined,
    sinceSuccessMs: undefined,
    clockOffsetMs: 0,
    clockUncertaintyMs: 0,
  },
})

const NO_FAILURES: Snapshot['waitFailures'] = { timeout: 0, aborted: 0, 'queue-full': 0, 'never-fits': 0, closed: 0 }

/**
 * Returns the current state of a throttler: totals per policy, blocked keys, the keys nearest to their limits, and the health of the store.
 * It takes two or three milliseconds per policy, however many keys there are.
 *
 * @example
 * import { snapshot } from '@weir/core/inspect'
 * const { policies, blocked, top } = snapshot(throttler)
 */
export function snapshot(throttler: Throttler<string, never>, options: SnapshotOptions = {}): Snapshot {
  return snapshotOf(adapterOf(throttler).inspected, options)
}

export function snapshotOf(inspected: Inspected, options: SnapshotOptions = {}): Snapshot {
  const { limiters, nodeId, state, coordinator, requests } = inspected
  const { top: most = 10, blocked: mostBlocked = 100, contains = '' } = options
  const now = inspected.clock.monotonic()
  const about = coordinator?.about(now) ?? NO_STORE
  const waits = inspected.waitingRequests(now)
  const policies: PolicySnapshot[] = []
  const top: KeyUsage[] = []
  const blocked: BlockedKey[] = []
  const limited: LimitedKey[] = []
  const wouldReject: KeyRejections[] = []
  for (const limiter of limiters) {
    const { policy, stats } = limiter
    const { name, limit, interval: usual, calendar, algorithm, coordination, dryRun } = policy
    const running = calendar?.of(limiter.cell.ordinal)
    const interval = running === undefined ? usual : running.end - running.start
    blocked.push(...blockedOf(limiter, now, mostBlocked, contains))
    const keys = limitedBy(limiter, now)
    limited.push(...keys.slice(0, most))
    if (policy.candidate) wouldReject.push(...mostRejected(keys).slice(0, most))
    const found = surveyOf(limiter).look(now, most)
    for (const { slot, used } of found.top)
      top.push({
        policy: name,
        key: limiter.keyOf(slot),
        used,
        own: limiter.meter.ownOf(slot, now),
        limit: limiter.most(limiter.limitOf(slot)),
      })
    policies.push({
      name,
      limit,
      intervalMs: interval,
      algorithm: algorithm.id,
      capacity: limiter.most(limit),
      coordination,
      dryRun,
      keys: limiter.table.size,
      maxKeys: limiter.maxKeys,
      overflowing: limiter.overflowing,
      blocked: limiter.blocks.size,
      allowed: escalating(limiter.meter),
      rejected: stats.rejected,
      rejections: stats.kinds.flatMap((one, i) => (stats.rejections[i] === 0 ? [] : [{ ...one, count: stats.rejections[i] as number }])),
      exchanges: Object.fromEntries(
        stats.reasons.map((reason, i) => [reason, stats.exchanges[i] as number]),
      ) as PolicySnapshot['exchanges'],
      blocks: { ...stats.blocks },
      inFlight: limiter.meter.inFlight ?? 0,
      reservations: { ...stats.reservations },
      waiting: waits?.policies.get(name) ?? 0,
      longestWaitMs: waits?.keys.find(({ policy }) => policy === name)?.longest ?? 0,
      unsynced: found.unsynced,
      unsyncedAgeMs: found.age,
      leased: found.held,
      overshoot: found.overshoot,
      measuredOvershoot: stats.overshoot.max(now),
      debt: found.debt,
      share: found.known > 0 ? Math.min(1, found.own / found.known) : 1 / about.nodes,
    })
  }
  // Some blocks have ended in this function, and their events are due.
  inspected.emitter.deliver()
  return {
    node: nodeId,
    state,
    drivenBy: inspected.clock.driven ? 'requests' : 'timers',
    ...about,
    requests: requestsOf(requests, now),
    policies,
    blocked,
    top,
    limited: limited.sort(byLastMinute),
    waiting: waits?.keys.slice(0, most) ?? [],
    waitFailures: { ...(waits?.failures ?? NO_FAILURES) },
    wouldReject,
    events: recentEvents(inspected.emitter, inspected.clock, now),
    rules: inspected.followed?.status,
  }
}

function limitedBy({ policy, rejectedKeys }: Limiter, now: number): LimitedKey[] {
  return [...rejectedKeys.read(now)]
    .map(([key, { reason, rejected, lastMinute, first, last }]) => ({
      policy: policy.name,
      key,
      reason,
      rejectedLastMinute: Math.round(lastMinute.sum(now)),
      rejected,
      sinceFirstMs: now - first,
      sinceLastMs: now - last,
    }))
    .sort(byLastMinute)
}

function mostRejected(keys: readonly LimitedKey[]): KeyRejections[] {
  return keys.map(({ policy, key, rejected }) => ({ policy, key, rejected })).sort((a, b) => b.rejected - a.rejected)
}

/** Most rejections in the last minute first. */
export function byLastMinute(a: LimitedKey, b: LimitedKey): number {
  return b.rejectedLastMinute - a.rejectedLastMinute || a.sinceLastMs - b.sinceLastMs
}

function surveyOf(limiter: Limiter): Survey {
  let survey = surveys.get(limiter)
  if (survey === undefined) surveys.set(limiter, (survey = new Survey(limiter)))
  return survey
}

/** The newest of the blocks that were read, because they matter most during an incident. */
function blockedOf(limiter: Limiter, now: number, most: number, contains: string): BlockedKey[] {
  const policy = limiter.policy.name
  const found: { key: string; block: Block }[] = []
  let looked = 0
  let dropped = 0
  for (const [slot, block] of limiter.blocks) {
    if (looked++ === BLOCKS_LOOKED_AT) break
    // `of` ends a block whose time is over, with its event.
    if (block.until <= now && limiter.blocks.of(slot, now) === undefined) continue
    const key = limiter.keyOf(slot)
    if (contains !== '' && !key.includes(contains)) continue
    found.push({ key, block })
    if (found.length - dropped > most) dropped++
  }
  return found
    .slice(dropped)
    .map(({ key, block }) => ({
      policy,
      key,
      remainingMs: Math.ceil(block.until - now),
      cause: block.manual ? ('manual' as const) : ('cooldown' as const),
    }))
    .sort((a, b) => b.remainingMs - a.remainingMs)
}
