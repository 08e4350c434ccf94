import { SETTLE } from '../../counting/gated-meter.ts'
import type { Exchanging } from '../../counting/site.ts'
import { isWeirError, WeirError } from '../../report/errors.ts'
import type { Emitter } from '../../report/events.ts'
import { reasonOf, show } from '../../report/show.ts'
import type { Announcement, HeartbeatReply, SyncReply } from '../../store/contract.ts'
import type { StoreStatus, ThrottlerState } from '../../throttler/coordinator.ts'
import type { Clock } from '../../time/clock.ts'
import { StoreTime } from '../../time/store-time.ts'
import type { SyncLoop } from '../exchange/loop.ts'
import { RuleWatch } from './rules.ts'
import { SyncStats } from './stats.ts'
import { checkAnnouncement } from './store-reply.ts'
import { Watch } from './watch.ts'

/** The parts of the throttler that the state needs. */
export interface StoreStateHost {
  readonly clock: Clock
  readonly meters: readonly Exchanging[]
  readonly loop: SyncLoop
  readonly emitter: Pick<Emitter, 'has' | 'emit'>
  /** The name of the store in messages. */
  readonly storeKind: string
  readonly nodeId: string
  /** Whether a node id belongs to an earlier throttler of this process, which has changed to the rules of a later one. */
  isFollowing(node: string): boolean
  /** Warns once per code and subject. */
  warn(error: WeirError, subject?: string): void
}

/**
 * Whether the store answers, and the news from it and from other processes: their number, blocks, keys near their limit, a loss of data.
 */
export class StoreState {
  state: ThrottlerState = 'idle'
  /** The store's clock. */
  readonly time: StoreTime
  readonly sync: SyncStats = new SyncStats()
  readonly watch: Watch
  readonly rules: RuleWatch
  /** Live processes. */
  nodes = 1
  /** When the store last went down, on the monotonic clock. */
  storeDownAt = 0
  /** When it answered again, and when that sync was sent. */
  storeUpAt: number = Number.NEGATIVE_INFINITY
  foundAt: number = Number.NEGATIVE_INFINITY
  #generation: string | undefined
  /** Whether the last heartbeat reported a step of the store's clock, and whether the last one with a reply did. */
  #saidStepped = false
  #saidBefore = false
  readonly #host: StoreStateHost

  constructor(host: StoreStateHost) {
    this.#host = host
    const now = host.clock.monotonic()
    this.time = new StoreTime(host.clock.now(), now)
    this.watch = new Watch(now)
    this.rules = new RuleWatch(host)
  }

  /** Handles an announcement from the store, or from another process through it. It may be any value, at any time. */
  heard(value: unknown): void {
    if (this.state === 'closed') return
    this.#host.loop.probe()
    const announcement = checkAnnouncement(
      value,
      (id) => this.#host.meters.find(({ storePolicy }) => storePolicy.id === id)?.storePolicy,
      (what, policyId, key) => this.nonsense(what, policyId, key),
    )
    if (announcement !== undefined) this.announced(announcement)
  }

  /** Warns of an invalid reply from the store. Only once per policy and kind, because more would follow. */
  nonsense(what: string, policyId?: string, key?: string): void {
    const policy = this.#host.meters.find(({ storePolicy }) => storePolicy.id === policyId)?.site.policy.name
    const of = `${key === undefined ? '' : ` for key ${show(key)}`}${policy === undefined ? '' : ` of policy ${show(policy)}`}`
    const message = `Ignored an invalid reply from the store ${show(this.#host.storeKind)}: ${what}${of}. Does another program write to these keys?`
    this.#host.warn(new WeirError('WEIR_STORE_REPLY', message), `${what} ${policy ?? ''}`)
  }

  /** Applies an announcement of another process, or of the store. `roundTrip` is set if it came with a reply. */
  announced(announcement: Announcement, roundTrip?: number): void {
    if (this.state === 'closed') return
    const now = this.#host.clock.monotonic()
    const { policyId: id, key } = announcement
    for (const meter of this.#host.meters) {
      if (meter.storePolicy.id !== id) continue
      if (now >= meter.rollAt) meter.roll(now)
      if (announcement.type === 'total') meter.counts?.announced?.(announcement, now)
      else if (announcement.type === 'ask') meter.counts?.syncKey(key, now)
      else if (announcement.type === 'lease') {
        if (announcement.lost) this.#warnOfLoss(meter.site.policy.name)
        meter.counts?.heardLease?.(announcement, now)
      } else meter.syncedBlocks.announced(announcement, now, roundTrip)
    }
  }

  #warnOfLoss(policy: string): void {
    const why = '(restart without data, eviction or failover). The limit may be exceeded for about four heartbeats'
    const message = `The store ${show(this.#host.storeKind)} lost the leases of policy ${show(policy)} ${why}. Use persistence, and noeviction for Redis.`
    this.#host.warn(new WeirError('WEIR_WARN_QUOTA_LOST', message), policy)
  }

  /** This process's time, for a request that must carry it. Otherwise undefined. */
  timeToTell(now: number, heartbeat: boolean): number | undefined {
    const stepped = this.time.stepped(now)
    if (heartbeat) this.#saidStepped = stepped
    return stepped || (heartbeat && this.time.measured) ? this.time.at(now) : undefined
  }

  /** A sync has succeeded. */
  succeeded({ time, heartbeat }: SyncReply, entries: number, sent: number, received: number): void {
    const first = !this.time.measured
    // The store got a step from this process. If its reply has none, another process has since reported that there is no step.
    if (heartbeat !== undefined && heartbeat.ahead === undefined && this.#saidBefore) this.time.catchUp(received)
    if (heartbeat !== undefined) this.#saidBefore = this.#saidStepped
    this.time.observe(sent, received, time, heartbeat?.ahead)
    for (const meter of this.#host.meters) {
      if (first) meter.adoptTime(received)
      else meter.roll(received)
      if (meter.site.expect(1)) meter.invalidate(received, false)
    }
    this.sync.succeed(entries, received - sent, received)
    if (this.#host.emitter.has('sync')) this.#host.emitter.emit('sync', { entries, durationMs: received - sent })
    if (this.state === 'connecting') this.state = 'synced'
    if (this.#host.loop.storeDown) this.#recovered(sent, received)
  }

  /** Makes each key compute its gate again. There is no event, because most silences end within moments. */
  silence(silent: boolean, now: number): void {
    if (!silent) this.storeUpAt = now
    this.#invalidate(now, true)
  }

  /** The process has stood still and may do so again before its next timer, so keys send their units at once from now on. */
  thawed(now: number): void {
    this.#invalidate(now, false)
  }

  #recovered(sent: number, now: number): void {
    this.#host.loop.storeDown = false
    this.state = 'synced'
    this.storeUpAt = now
    // If a sync waited through the outage, the store answered it when it came back, not when it was sent.
    this.foundAt = Math.max(sent, now - 2 * this.#host.loop.usual)
    this.#invalidate(now, true)
    // Sends the units counted during the outage, and units that were in flight when it went down.
    this.#host.loop.scanAll({ all: false, resend: false })
    if (this.#host.emitter.has('storeUp')) this.#host.emitter.emit('storeUp', { durationMs: now - this.storeDownAt })
  }

  /** A sync has failed. Without the store each policy decides by its `failMode`. */
  failed(error: unknown, entries: number, sent: number, received: number, passing: boolean): void {
    const cause = this.sync.fail(error, received)
    if (this.#host.emitter.has('syncFailed')) this.#host.emitter.emit('syncFailed', { entries, durationMs: received - sent, cause, error })
    if (this.#host.loop.storeDown || this.state === 'closed' || passing) return
    this.#host.loop.storeDown = true
    this.state = 'storeDown'
    this.storeDownAt = received
    this.#invalidate(received, true)
    if (this.#host.emitter.has('storeDown')) this.#host.emitter.emit('storeDown', { cause: error })
    else {
      // Warns without a listener too, because otherwise a mistyped address of the store would go unnoticed.
      const why = reasonOf(error).replace(/\.$/, '')
      const what = isWeirError(error) ? why : `The store ${show(this.#host.storeKind)} is unreachable (${why})`
      const message = `${what}. Policies use their "failMode" until it answers. Check its address; listen for "storeDown" events.`
      this.#host.warn(new WeirError('WEIR_STORE_UNAVAILABLE', message, { cause: error }))
    }
  }

  /** The store has answered a heartbeat. */
  heartbeat(reply: HeartbeatReply, sent: number, received: number): void {
    this.watch.heard(reply, received)
    if (reply.rules !== undefined) this.rules.heard(reply.rules)
    // A registry that was lost, or that expired during an outage, fills up again within a heartbeat. Until then its number is too small,
    // and the first processes to be back would take themselves for the only ones.
    const filling = received < this.storeUpAt + SETTLE || (this.#generation !== undefined && this.#generation !== reply.generation)
    const nodes = filling ? Math.max(reply.nodes, this.nodes) : reply.nodes
    if (nodes !== this.nodes && nodes >= 1) {
      const before = this.nodes
      this.nodes = nodes
      this.#invalidate(received, false)
      if (this.#host.emitter.has('nodes')) this.#host.emitter.emit('nodes', { nodes, before })
    }
    for (const block of reply.blocks) this.announced({ type: 'block', ...block }, received - sent)
    for (const total of reply.hot) this.announced(total)
    for (const notice of reply.leases ?? []) this.announced(notice)
    if (this.#generation !== undefined && this.#generation !== reply.generation) this.#storeLostData(received)
    this.#generation = reply.generation
  }

  /** Sends everything again, because the store has lost counts and blocks that processes still have. */
  #storeLostData(now: number): void {
    this.#host.loop.scanAll({ all: false, resend: true })
    for (const { syncedBlocks } of this.#host.meters) syncedBlocks.restore(now)
  }

  /** The store's part of a snapshot. */
  about(now: number): StoreStatus {
    const { exchanges, failed, failures, failuresLastHour, entries, lastDuration, lastError, succeededAt } = this.sync
    const sync = {
      exchanges,
      failures: failed,
      failuresLastHour: Math.round(failuresLastHour.sum(now)),
      failuresByCause: { ...failures },
      entries,
      lastDurationMs: lastDuration,
      lastError,
      sinceSuccessMs: succeededAt === undefined ? undefined : now - succeededAt,
      clockOffsetMs: this.time.at(now) - this.#host.clock.now(),
      clockUncertaintyMs: this.time.uncertainty(now),
    }
    return { storeDownMs: this.state === 'storeDown' ? now - this.storeDownAt : 0, nodes: this.nodes, sync }
  }

  #invalidate(now: number, away: boolean): void {
    for (const meter of this.#host.meters) meter.invalidate(now, away)
  }
}
