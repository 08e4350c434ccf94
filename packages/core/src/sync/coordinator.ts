import { type Holding, type HoldingHost, StoreHolds } from '../budget/store-holds.ts'
import { formOf } from '../counting/forms.ts'
import type { CountsSynced, Exchanging, StoreExchange } from '../counting/site.ts'
import type { Asking, AskingHost } from '../decide/asking.ts'
import { countsAtStore } from '../decide/coordination.ts'
import type { Policy, PolicyOptions } from '../decide/policy.ts'
import { show, WeirError } from '../report/errors.ts'
import type { AuditLog, MeetingPoint, StatusReport, StoreConnection, SyncResult } from '../store/contract.ts'
import type {
  Coordinated,
  Coordinator,
  CoordinatorOptions,
  MeterKey,
  Store,
  StoreStatus,
  ThrottlerState,
} from '../throttler/coordinator.ts'
import { throttlerOfReload } from '../throttler/hot-reload.ts'
import { KEPT_INTERVALS } from '../throttler/limiter-set.ts'
import { type Names, namesAt } from '../throttler/names.ts'
import { newNodeId } from '../throttler/node-id.ts'
import type { WaitingAtStore } from '../throttler/open-queues.ts'
import { type Clock, within } from '../time/clock.ts'
import { StoreTime } from '../time/store-time.ts'
import { CentralSide } from './central-side.ts'
import { HEARTBEATS_MISSED, SyncLoop } from './exchange/loop.ts'
import { LaterMeters } from './later-meters.ts'
import { kindOf, openStore } from './link/open-store.ts'
import { noticeSmallLimits } from './link/small-limits.ts'
import { StoreState } from './link/state.ts'
import { refreshKeys } from './refresh.ts'
import { askUsage } from './usage.ts'
import { loadWaiting, Waits } from './waits.ts'

/** The coordinators that are in use, by the store's value. */
const running = new WeakMap<MeetingPoint, Set<BackgroundCoordinator>>()

/**
 * Makes a store of a meeting point. Each process counts in memory and syncs its counts in the background.
 *
 * @example
 * const store = backgroundStore({ kind: 'mine', open: (node) => new MyConnection(node) })
 */
export function backgroundStore(meetingPoint: MeetingPoint): Store {
  return {
    get kind() {
      return meetingPoint.kind
    },
    ...(meetingPoint.address !== undefined && { address: meetingPoint.address }),
    ...(meetingPoint.decides !== undefined && { decides: (step: string) => meetingPoint.decides?.(step) === true }),
    ...(meetingPoint.reserves === true && { reserves: true }),
    open: (node) => meetingPoint.open(node),
    coordinate,
    reload: (policies, create) => throttlerOfReload(meetingPoint, policies, create),
  }
}

/** A coordinator of this store's value that can serve the throttler, or a new one. */
export function coordinate(this: MeetingPoint, options: CoordinatorOptions): Coordinator {
  const ids = options.policies.map(({ id }) => id)
  let all = running.get(this)
  if (all === undefined) running.set(this, (all = new Set()))
  for (const one of all) if (one.fits(options) && one.isFree(options.throttler, ids) && !one.hasNamed(options)) return one
  return new BackgroundCoordinator(options, this, all)
}

/** Syncs the counts of one process: of all throttlers in it that use the same store. */
class BackgroundCoordinator implements Coordinator {
  nodeId: string
  readonly names: Names
  readonly exchange: StoreExchange
  readonly asking: (host: AskingHost) => Asking = (host) => new Waits(host, this.#central.decisions(host), this.#later)
  readonly holding = (host: HoldingHost): Holding => new StoreHolds(host)
  readonly waitingAtStore = (): Promise<WaitingAtStore> => import('../throttler/waiting-at-store.ts')
  readonly #central: CentralSide
  readonly #later: LaterMeters
  readonly #point: MeetingPoint
  readonly #clock: Clock
  readonly #heartbeat: number
  readonly #localTime: StoreTime
  readonly #link: StoreState
  readonly #loop: SyncLoop
  readonly #all: Set<BackgroundCoordinator>
  readonly #random: () => number
  /** The throttlers that it serves, with their policies. Weak references, so that a throttler dropped before its start is collected. */
  #served: readonly Served[] = []
  /**
   * The policies of closed throttlers, each with the time (on the monotonic clock) until which the store may have counts of this process
   * for it. Counts in the store only grow. A new meter would start below them, and its units would be ignored.
   */
  readonly #used = new Map<string, number>()
  readonly startedAt: number
  #connection: StoreConnection | undefined
  throttlers: readonly Coordinated[] = []

  constructor({ clock, random, heartbeat }: CoordinatorOptions, point: MeetingPoint, all: Set<BackgroundCoordinator>) {
    this.names = namesAt(point)
    this.nodeId = newNodeId(random)
    this.startedAt = clock.monotonic()
    this.#point = point
    this.#all = all
    this.#random = random
    this.#clock = clock
    this.#heartbeat = heartbeat
    this.#localTime = new StoreTime(clock.now(), clock.monotonic())
    const exchange = () => this.exchange
    const warn = (error: WeirError) => this.#warn(error)
    const self = this
    // Each sync calls this several times. As a rule there is one throttler.
    const meters = () => {
      const { throttlers } = this
      return throttlers.length === 1 ? (throttlers[0] as Coordinated).meters() : throttlers.flatMap((throttler) => throttler.meters())
    }
    this.#central = new CentralSide(clock, exchange, warn, meters)
    this.#later = new LaterMeters(clock, exchange, warn, () => this.welcome())
    const central = this.#central
    this.#link = new StoreState({
      clock,
      get meters() {
        return meters()
      },
      get loop() {
        return self.#loop
      },
      emitter: {
        has: (name) => this.throttlers.some(({ emitter }) => emitter.has(name)),
        emit: (name, event) => {
          for (const { emitter } of this.throttlers) emitter.emit(name, event)
        },
      },
      storeKind: kindOf(point),
      get nodeId() {
        return self.nodeId
      },
      warn: (error, subject) => this.#warn(error, subject),
      isFollowing: (node) => this.names.isFollowing(node),
    })
    const link = this.#link
    this.#loop = new SyncLoop({
      clock,
      random,
      meters,
      heartbeat,
      time: link.time,
      observer: {
        succeeded: (reply, entries, sent, received) => {
          link.succeeded(reply, entries, sent, received)
          central.answered()
        },
        heartbeat: (reply, sent, received) => {
          link.heartbeat(reply, sent, received)
          noticeSmallLimits(this.throttlers, link.nodes)
        },
        failed: (error, entries, sent, received, passing) => link.failed(error, entries, sent, received, passing),
        tick: (monotonic) => this.#tick(monotonic),
        nonsense: (what, policyId, key) => link.nonsense(what, policyId, key),
        thawed: (now) => link.thawed(now),
        silence: (silent, now) => link.silence(silent, now),
        tooManyBlocks: () => this.#warn(new WeirError('WEIR_STORE_UNAVAILABLE', TOO_MANY_BLOCKS), 'blocks'),
        time: (monotonic, beat) => link.timeToTell(monotonic, beat),
        about: (monotonic) => ({
          ...link.watch.request(this.throttlers, monotonic),
          ...link.rules.request(this.throttlers, monotonic),
        }),
      },
    })
    const loop = this.#loop
    this.exchange = {
      form: formOf,
      lifetime: heartbeat * HEARTBEATS_MISSED,
      central: (algorithm) => central.form(algorithm),
      letWait: loadWaiting,
      meanwhile: (...all) => this.#later.meanwhile(...all),
      time: link.time,
      localTime: this.#localTime,
      random,
      get nodes() {
        return link.nodes
      },
      get storeDown() {
        return loop.storeDown
      },
      get silent() {
        return loop.silent
      },
      get roundTrip() {
        return loop.usual
      },
      get storeUpAt() {
        return link.storeUpAt
      },
      freezes: (now) => loop.freezes.lately(now),
      get foundAt() {
        return link.foundAt
      },
      defer: (run) => clock.defer(run),
      due: (meter, slot, at) => loop.due(meter, slot, at),
      changeBlock: (blocks, change, until) => loop.changeBlock(blocks, change, until),
    }
  }

  get state(): ThrottlerState {
    return this.#link.state
  }

  /** Whether a throttler with these options can share this coordinator. */
  fits({ clock, heartbeat }: CoordinatorOptions): boolean {
    return clock === this.#clock && heartbeat === this.#heartbeat && this.state !== 'closed' && this.#used.size < MOST_USED
  }

  /** Whether none of these policies is another throttler's. */
  isFree(throttler: Coordinated, policyIds: readonly string[]): boolean {
    const now = this.#clock.monotonic()
    if (policyIds.some((id) => (this.#used.get(id) ?? now) > now)) return false
    return !this.#alive().some(({ whose, policies }) => whose.deref() !== throttler && policies.some(({ id }) => policyIds.includes(id)))
  }

  /** Whether another throttler has a policy with one of the names. Their ids may become equal if the new one replaces its rule. */
  hasNamed({ throttler, policies }: CoordinatorOptions): boolean {
    const shared = (all: readonly Policy[]) => all.filter(countsAtStore).map(({ name }) => name)
    const names = shared(policies)
    return this.#others(throttler).some(({ policies }) => shared(policies).some((name) => names.includes(name)))
  }

  /** Leaves out throttlers that were dropped before they started. */
  #alive(): readonly Served[] {
    this.#served = this.#served.filter(({ whose }) => whose.deref() !== undefined)
    return this.#served
  }

  serve(throttler: Coordinated, rules: readonly PolicyOptions<never>[], policies: readonly Policy[]): void {
    const taken = policies.find(({ id }) => !this.isFree(throttler, [id]))
    if (taken !== undefined) {
      const place = this.names.placeOf(taken.name, throttler)
      const made = place === undefined ? '' : ` (made at ${place})`
      const what = `Policy ${show(taken.name)} already exists in another throttler on this store${made}`
      throw new WeirError('WEIR_DUPLICATE_POLICY', `${what}. Rename one of them.`)
    }
    this.names.claim(throttler, rules, policies)
    this.#served = [...this.#others(throttler), { whose: new WeakRef(throttler), policies }]
    this.#all.add(this)
  }

  #others(throttler: Coordinated): readonly Served[] {
    return this.#alive().filter(({ whose }) => whose.deref() !== throttler)
  }

  get loading(): Promise<unknown> | undefined {
    return this.#later.loading
  }

  begin(): void {
    for (const time of [this.#localTime, this.#link.time]) time.begin(this.#clock.now(), this.#clock.monotonic())
  }

  join(throttler: Coordinated): void {
    this.throttlers = [...this.throttlers, throttler]
    if (this.throttlers.length > 1) {
      this.welcome()
      this.#loop.wakeNow()
      return
    }
    // Outside of requests random numbers may be the same in all processes.
    if (this.#link.state === 'closed' || this.#clock.driven) {
      // Starts as a new process, also for throttlers that have not started yet.
      this.nodeId = newNodeId(this.#random)
      this.#used.clear()
      this.#all.add(this)
    }
    this.#link.state = 'connecting'
    const connection = openStore(this.#point, {
      id: this.nodeId,
      clock: this.#clock,
      announced: (announcement) => this.#link.heard(announcement),
      warned: (error) => this.#warn(error, error.message),
    })
    this.#connection = connection
    this.#central.open(connection)
    this.#loop.start(connection)
  }

  retire(meters: readonly Exchanging[]): void {
    this.#loop.retire(meters)
  }

  welcome(): void {
    this.#loop.forgetCursor()
  }

  ask(meter: Exchanging, id: string, timeout: number): Promise<SyncResult | undefined> {
    const [loop, link, clock] = [this.#loop, this.#link, this.#clock]
    return meter.inquire?.(id, timeout) ?? askUsage(meter.counts as CountsSynced, id, timeout, { clock, link, loop })
  }

  get stale(): boolean {
    return this.#loop.stale
  }

  watchStale(): void {
    this.#loop.watching = true
  }

  sendDue(): Promise<void> {
    return this.#loop.sendDue()
  }

  refresh(keys: readonly MeterKey[], timeout: number): Promise<void> {
    const [loop, link] = [this.#loop, this.#link]
    // A request that reads nothing makes no counts new.
    if (keys.length === 0) return Promise.resolve()
    return within(this.#clock, timeout, refreshKeys(keys, loop, link)).then(() => loop.freezes.freshen())
  }

  async flush(timeout: number): Promise<boolean> {
    const end = this.#clock.monotonic() + timeout
    await within(this.#clock, timeout, Promise.resolve(this.loading))
    return await this.#flush(end, false)
  }

  /** Sends everything to the store until `end`. Returns whether the store has it. */
  async #flush(end: number, closing: boolean): Promise<boolean> {
    const sent = await this.#loop.flush(end - this.#clock.monotonic(), closing)
    return (await this.#central.flush(end - this.#clock.monotonic())) && sent
  }

  wake(): void {
    this.#loop.wakeNow()
  }

  about(now: number): StoreStatus {
    return this.#link.about(now)
  }

  others(now: number): readonly StatusReport[] {
    return this.#link.watch.others(now)
  }

  audit(): Promise<AuditLog> | undefined {
    return this.#connection?.audit?.()
  }

  async leave(throttler: Coordinated, timeout: number): Promise<void> {
    const begun = this.#clock.monotonic()
    if (this.throttlers.includes(throttler)) await this.#flush(begun + timeout, true)
    this.#leaveBehind(this.#served.find(({ whose }) => whose.deref() === throttler)?.policies ?? [])
    this.#served = this.#others(throttler)
    this.#loop.forget(throttler.meters())
    this.throttlers = this.throttlers.filter((one) => one !== throttler)
    if (this.throttlers.length > 0) return
    this.#link.state = 'closed'
    this.#central.close()
    this.#all.delete(this)
    await this.#loop.stop(Math.max(LEAVE, timeout - (this.#clock.monotonic() - begun)))
  }

  #leaveBehind(policies: readonly Policy[]): void {
    const now = this.#clock.monotonic()
    for (const [id, until] of this.#used) if (until <= now) this.#used.delete(id)
    for (const { id, interval } of policies) this.#used.set(id, now + KEPT_INTERVALS * interval)
  }

  #tick(monotonic: number): number {
    this.#localTime.follow(this.#clock.now(), monotonic)
    // Builds no array of times, because this runs at each timer of the process.
    let next = Number.POSITIVE_INFINITY
    for (const throttler of this.throttlers) next = Math.min(next, throttler.tick(monotonic))
    return next
  }

  /**
   * Passes a warning to each throttler that has a listener, even if it has not started. Without any listener, one throttler warns the
   * process.
   */
  #warn(error: WeirError, subject?: string): void {
    const all = this.#alive().flatMap(({ whose }) => whose.deref() ?? [])
    const listening = all.filter(({ emitter }) => emitter.has('warning'))
    for (const throttler of listening.length > 0 ? listening : all.slice(0, 1)) throttler.warn(error, subject)
  }
}

/** A throttler and its policies. */
interface Served {
  readonly whose: WeakRef<Coordinated>
  readonly policies: readonly Policy[]
}

/**
 * With this many policies of closed throttlers, a coordinator accepts no further throttler. The next one starts as a process of its own.
 */
const MOST_USED = 1_000
/** The least time for a process to leave the store, in milliseconds, even if less is left of its timeout. */
const LEAVE = 100
const TOO_MANY_BLOCKS =
  'More than 100,000 changes of blocks wait for the store. The oldest ones will not reach other processes. Check the store.'
