import type { Coordination } from '../algorithms/algorithm.ts'
import type { Limiter } from '../decide/limiter.ts'
import type { Block } from '../keys/blocks.ts'
import type { AcquireFailure } from '../queue/acquire-error.ts'
import type { WaitingKey } from '../queue/waits.ts'
import type { RulesStatus } from '../report/rules-status.ts'
import type { ExchangeReason, RejectionReason, RejectionSource } from '../report/stats.ts'
import { adapterOf } from '../throttler/adapter-side.ts'
import type { Inspected, StoreStatus } from '../throttler/coordinator.ts'
import type { Throttler } from '../throttler/throttler.ts'
import { escalating, type RequestsSnapshot, requestsOf } from './requests.ts'
import { Survey } from './survey.ts'

/** A key that is blocked at this node. */
export interface BlockedKey {
  /** The policy's name. */
  readonly policy: string
  readonly key: string
  /** Milliseconds left. */
  readonly remainingMs: number
  /** Exceeding the limit, or `throttler.block`. */
  readonly cause: 'cooldown' | 'manual'
}

/** How much of its limit a key has used in the running interval, as far as this node knows. */
export interface KeyUsage {
  readonly policy: string
  readonly key: string
  /** Units, of all nodes. */
  readonly used: number
  /** This node's part of them. */
  readonly own: number
  /** The most units that the key can have: the limit, or the size of a bucket. */
  readonly limit: number
}

/** How often rules to come would have rejected a key at this node. Of very many keys the counts are estimates. */
export interface KeyRejections {
  readonly policy: string
  readonly key: string
  readonly rejected: number
}

/** One policy at this node. Sums are since the node's start. */
export interface PolicySnapshot {
  readonly name: string
  /** Units per `interval` (milliseconds; of a calendar the running one) for each key; where the interval is 0, units in flight. */
  readonly limit: number
  readonly intervalMs: number
  /** The algorithm's id, e.g. `'fixed-window'`. */
  readonly algorithm: string
  /** Units that a key which was not used for long may take at once: the limit, or what a bucket holds. */
  readonly capacity: number
  readonly coordination: Coordination
  /** Rejections are counted, but nothing was rejected. */
  readonly dryRun: boolean
  /** Keys held, and how many there may be. */
  readonly keys: number
  readonly maxKeys: number
  /** New keys find no room. */
  readonly overflowing: boolean
  /** Keys that are blocked. Those whose block ended in the last moments may still be in it. */
  readonly blocked: number
  /** Units allowed, and not given back as their request never went. */
  readonly allowed: number
  /** Requests rejected. */
  readonly rejected: number
  /** The same by reason and source; those that never happened are left out. */
  readonly rejections: readonly { readonly reason: RejectionReason; readonly source: RejectionSource; readonly count: number }[]
  /** Counts of keys that were sent, by reason. */
  readonly exchanges: Readonly<Record<ExchangeReason, number>>
  /** Blocks that began, by cause. */
  readonly blocks: Readonly<Record<'exceeded' | 'manual' | 'remote', number>>
  /** Units of requests in flight at this node, of all keys (`concurrency()`). 0 for other algorithms. */
  readonly inFlight: number
  /** Requests that wait for it at this node, with `acquire` or as they are held. */
  readonly waiting: number
  /** Milliseconds for which the one of them has waited that came first; 0 when there is none. */
  readonly longestWaitMs: number
  /** Own units that the store does not know of yet. */
  readonly unsynced: number
  /** Milliseconds for which the oldest of them may have been held back, those of quiet keys left out. */
  readonly unsyncedAgeMs: number
  /** With coordination `'leased'`: units of all keys that this node holds ahead of requests. Else 0. */
  readonly leased: number
  /**
   * Estimate of what any key exceeds its limit by at most, as a part of the limit: what is known, and as much from
   * every other node as this one has not sent yet. 0 while no key can be over, and with coordination `'leased'`.
   */
  readonly overshoot: number
  /**
   * Units that a key's bucket holds beyond what it may, of the key with the most: allowed before the nodes had heard of each other,
   * or charged. The key is closed until they have run out. 0 for other algorithms.
   */
  readonly debt: number
  /** This node's part of the units of keys that were exchanged; 1/nodes while there are none. */
  readonly share: number
}

/** The state of a process at one moment. */
export interface Snapshot extends StoreStatus {
  /** The node's id. */
  readonly node: string
  /** As `throttler.state`. */
  readonly state: string
  readonly requests: RequestsSnapshot
  readonly policies: readonly PolicySnapshot[]
  /** Blocked keys, those with the most time left first; of many blocked keys some, see `SnapshotOptions`. */
  readonly blocked: readonly BlockedKey[]
  /** The keys with the most units, most used first; by policy. */
  readonly top: readonly KeyUsage[]
  /** The keys that requests wait for at this node, those first that have waited longest; of very many some. */
  readonly waiting: readonly WaitingKey[]
  /** Requests that were to wait and did not go, by reason; since the node's start. */
  readonly waitFailures: Readonly<Record<AcquireFailure, number>>
  /** Candidate rules (`next` of the rules that it follows): the keys that they would have rejected most often, at most `top` per policy. */
  readonly wouldReject: readonly KeyRejections[]
  /** The rules that it follows (`follow` of `@weir/core/rules`); undefined if it follows none. */
  readonly rules: RulesStatus | undefined
}

/** Options of `snapshot`. */
export interface SnapshotOptions {
  /**
   * Limits how many of the most used keys of each policy are listed, and how many keys that requests wait for.
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
   * Lists only blocked keys that contain this text. Up to 10,000 blocked keys of each policy are searched.
   *
   * @default none: all blocked keys
   */
  readonly contains?: string
}

/** Blocks that one snapshot looks at, of each policy. */
const BLOCKS_LOOKED_AT = 10_000

/** How far the walks through large tables have got. */
const surveys = new WeakMap<Limiter, Survey>()

/** The state of the store in a snapshot without a store. */
const NO_STORE: StoreStatus = Object.freeze({
  storeDownMs: 0,
  nodes: 1,
  sync: {
    exchanges: 0,
    failures: 0,
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
 * The current state of a throttler: totals per policy, blocked keys, the keys nearest to their limits, sync health. It takes two or three
 * milliseconds per policy, however many keys there are.
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
  const wouldReject: KeyRejections[] = []
  for (const limiter of limiters) {
    const { policy, stats } = limiter
    const { name, limit, interval: usual, calendar, algorithm, coordination, dryRun } = policy
    const running = calendar?.of(limiter.cell.ordinal)
    const interval = running === undefined ? usual : running.end - running.start
    blocked.push(...blockedOf(limiter, now, mostBlocked, contains))
    for (const one of limiter.rejectedKeys?.top(most) ?? []) wouldReject.push({ policy: name, ...one })
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
      waiting: waits?.policies.get(name) ?? 0,
      longestWaitMs: waits?.keys.find(({ policy }) => policy === name)?.longest ?? 0,
      unsynced: found.unsynced,
      unsyncedAgeMs: found.age,
      leased: found.held,
      overshoot: found.overshoot,
      debt: found.debt,
      share: found.known > 0 ? Math.min(1, found.own / found.known) : 1 / about.nodes,
    })
  }
  // Blocks have ended meanwhile.
  inspected.emitter.deliver()
  return {
    node: nodeId,
    state,
    ...about,
    requests: requestsOf(requests, now),
    policies,
    blocked,
    top,
    waiting: waits?.keys.slice(0, most) ?? [],
    waitFailures: { ...(waits?.failures ?? NO_FAILURES) },
    wouldReject,
    rules: inspected.followed?.status,
  }
}

function surveyOf(limiter: Limiter): Survey {
  let survey = surveys.get(limiter)
  if (survey === undefined) surveys.set(limiter, (survey = new Survey(limiter)))
  return survey
}

/** The newest blocks among those looked at, since they are what somebody who looks now wants to see. */
function blockedOf(limiter: Limiter, now: number, most: number, contains: string): BlockedKey[] {
  const policy = limiter.policy.name
  const found: { key: string; block: Block }[] = []
  let looked = 0
  let dropped = 0
  for (const [slot, block] of limiter.blocks) {
    if (looked++ === BLOCKS_LOOKED_AT) break
    // Ends a block whose time is over, with its event.
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
