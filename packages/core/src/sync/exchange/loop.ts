import { Batch, type EntryOwner } from '../../counting/batch.ts'
import type { CountsSynced, Exchanging, ScanOptions } from '../../counting/site.ts'
import type { SyncedBlocks } from '../../counting/synced-blocks.ts'
import { WeirError } from '../../report/errors.ts'
import type {
  BlockChange,
  HeartbeatReply,
  HeartbeatRequest,
  StoreConnection,
  SyncEntry,
  SyncReply,
  SyncRequest,
  SyncResult,
} from '../../store/contract.ts'
import { STOOD_STILL } from '../../time/after-silence.ts'
import { Alarm } from '../../time/alarm.ts'
import type { Clock } from '../../time/clock.ts'
import type { StoreTime } from '../../time/store-time.ts'
import { closeOf, syncOf } from '../link/open-store.ts'
import type { Nonsense } from '../link/store-reply.ts'
import { BlockChanges, changeAt, type PendingBlock } from './block-changes.ts'
import { DueKeys } from './due-keys.ts'
import { type Flight, Flights } from './flights.ts'
import { Freezes } from './freezes.ts'
import { Inquiries } from './inquiries.ts'
import { SpanWalks } from './walks.ts'

/** Receives the events of syncs. Times are of the monotonic clock. */
export interface SyncObserver {
  succeeded(reply: SyncReply, entries: number, sent: number, received: number): void
  heartbeat(reply: HeartbeatReply, sent: number, received: number): void
  /** @param passing whether the next sync will probably succeed, because only a connection was lost while the process stood still */
  failed(error: unknown, entries: number, sent: number, received: number, passing: boolean): void
  /** Called at each tick, before anything is sent. Returns when the next one must come at the latest. */
  tick(now: number): number
  /** The process has stood still. */
  thawed(now: number): void
  /** The store owes an answer for much longer than usual, or has answered after that. */
  silence(silent: boolean, now: number): void
  /** The time that this process uses, if the store needs it. */
  time(now: number, heartbeat: boolean): number | undefined
  /** The store has been unavailable for so long that unsent changes of blocks were dropped. */
  tooManyBlocks(): void
  /** The store's answer has a part that can't be used. */
  nonsense: Nonsense
  /** The part of a heartbeat that describes this process. */
  about(now: number): Pick<HeartbeatRequest, 'status' | 'watch' | 'rules'>
}

export interface SyncLoopOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly meters: () => readonly Exchanging[]
  /** Milliseconds between two heartbeats. */
  readonly heartbeat: number
  /** The store's clock. */
  readonly time: StoreTime
  readonly observer: SyncObserver
}

/** Most key writes in one batch. Building and settling a full batch takes about a millisecond. */
const BATCH = 200
/** Batches under way at once. Keys that fall due meanwhile wait for one of them to return. */
const MOST_IN_FLIGHT = 4
/**
 * While the store is down, it is probed this often, in milliseconds, on a grid of the store's clock. Intervals of whole seconds begin
 * on this grid. So all processes probe, and are back, at the same moment. If the store returns before an interval, they notice it by
 * the interval's start.
 */
const PROBE = 200
/**
 * Probes don't wait for earlier probes, because a lost one would delay the return until its timeout. Beyond this many under way they become
 * rarer.
 */
const USUAL_PROBES = 5
/** The least time between two probes, in milliseconds. */
const LEAST_DISTANCE = 20
/**
 * After its start a process sends heartbeats at ever longer distances, this one first, in milliseconds: the others of a fleet that
 * starts at the same moment are not there yet at the first one.
 */
const FIRST_DISTANCE = 10
/** A process that misses this many heartbeats no longer counts as live. */
export const HEARTBEATS_MISSED = 4

/**
 * Syncs counts with the store: due keys at once, all others at the end of their span, a heartbeat each second, and a probe while the
 * store is down. One timer serves everything, and there is none per key.
 */
export class SyncLoop {
  readonly #clock: Clock
  readonly #meters: () => readonly Exchanging[]
  readonly #heartbeatEvery: number
  readonly #time: StoreTime
  readonly #observer: SyncObserver
  #connection: StoreConnection | undefined
  readonly #alarm: Alarm
  #deferred = false
  #running = false
  readonly #dueKeys = new DueKeys()
  readonly #walks: SpanWalks
  readonly #blocks = new BlockChanges()
  readonly #flights = new Flights()
  readonly #inquiries = new Inquiries()
  /** When the observer must be called next. */
  #nextTick = Number.POSITIVE_INFINITY
  /** Changes with each key write that is sent, and if the store has lost counts. A flush then checks again for unsent counts. */
  #left = 0
  /** Whether key writes failed in a sync that others passed, because part of the store is down. */
  #failedAlone = false
  #heartbeatAt = Number.NEGATIVE_INFINITY
  /** When the last heartbeat was sent. */
  #beatenAt = Number.NEGATIVE_INFINITY
  /** Milliseconds to the next heartbeat of a process that has just started. */
  #distance = FIRST_DISTANCE
  #cursor: string | undefined
  #idle: (() => void)[] = []
  readonly freezes: Freezes
  /** Whether syncs have failed since the process stood still, so that their counts must be sent again. */
  #failedThawing = false
  /** Whether requests depend on `stale`. Then ticks are never far apart. */
  watching = false
  storeDown = false

  constructor(options: SyncLoopOptions) {
    this.#clock = options.clock
    this.freezes = new Freezes(options.clock)
    this.#alarm = new Alarm(options.clock, (at) => this.#tick(at))
    this.#walks = new SpanWalks(options.random)
    this.#meters = options.meters
    this.#heartbeatEvery = options.heartbeat
    this.#time = options.time
    this.#observer = options.observer
  }

  start(connection: StoreConnection): void {
    this.#connection = connection
    this.#running = true
    this.#heartbeatAt = Number.NEGATIVE_INFINITY
    this.#distance = FIRST_DISTANCE
    this.#cursor = undefined
    this.#tick()
  }

  /** The store owes an answer for much longer than usual. */
  get silent(): boolean {
    return this.#flights.silent
  }

  /** Whether the process has just stood still and has read no counts since. */
  get stale(): boolean {
    if (!this.#running || this.storeDown || !this.#flights.answered) return false
    return this.freezes.stale(this.#clock.monotonic(), this.#alarm.at)
  }

  /** Requests a sync of a key at `at`, or as soon after it as a batch is free. */
  due(meter: CountsSynced, slot: number, at: number): void {
    this.#dueKeys.add(meter, slot, at)
    if (at <= this.#clock.monotonic()) this.#soon()
    else this.#wake(at)
  }

  /** Sends what is due. Resolves once the connection has it, because connections write within a turn of the event loop. */
  sendDue(): Promise<void> {
    this.#tick()
    return new Promise((resolve) => this.#clock.defer(resolve))
  }

  /** Ticks soon, because the observer has something new to look after. */
  wakeNow(): void {
    this.#soon()
  }

  /**
   * Probes at once, because another process has just reached the store. Keeps a distance between probes, because a part of the store may be
   * down.
   */
  probe(): void {
    if (!this.#probing) return
    this.#heartbeatAt = Math.min(this.#heartbeatAt, this.#beatenAt + LEAST_DISTANCE)
    this.#wake(Math.max(this.#heartbeatAt, this.#clock.monotonic()))
  }

  /** The usual (median) time to an answer of the store, in milliseconds. */
  get usual(): number {
    return this.#flights.usual
  }

  /** Reads a key from the store with a key write that counts nothing. Resolves with undefined if the store did not answer. */
  inquire(entry: SyncEntry): Promise<SyncResult | undefined> {
    const answer = this.#inquiries.add(entry)
    if (!this.#running || this.storeDown) this.#inquiries.drop()
    else this.#soon()
    return answer
  }

  changeBlock(blocks: SyncedBlocks, change: BlockChange, until: number): void {
    this.#blocks.add({ blocks, change, until })
    this.#soon()
  }

  /** Walks over all keys of all policies now: after an outage, or when the store lost its data. */
  scanAll(options: ScanOptions): void {
    if (options.resend) this.#left++
    this.#walks.beginAll(this.#meters(), options)
    this.#soon()
  }

  /** Sends the remaining counts of meters that are no longer used. */
  retire(meters: readonly Exchanging[]): void {
    for (const meter of meters) this.#walks.retire(meter)
    this.#soon()
  }

  /** Stops the walks over these meters. Their counts have been sent. */
  forget(meters: readonly Exchanging[]): void {
    for (const meter of meters) this.#walks.forget(meter)
  }

  /** Makes the store's next heartbeat reply return everything again. */
  forgetCursor(): void {
    this.#cursor = undefined
  }

  /**
   * Sends all remaining counts.
   *
   * @param closing the store may have lost its data since the last heartbeat, and no later one would notice
   * @returns whether that succeeded within `timeout` milliseconds
   */
  async flush(timeout: number, closing: boolean): Promise<boolean> {
    const end = this.#clock.monotonic() + timeout
    // Probes now, because a store that is down may just be back.
    if (closing || this.storeDown) this.#heartbeatAt = Number.NEGATIVE_INFINITY
    this.#soon()
    // Walks skip keys that are already being synced, so the loop repeats until nothing was left to send.
    for (let seen = -1; (seen !== this.#left || this.storeDown) && this.#connection !== undefined; ) {
      const left = end - this.#clock.monotonic()
      if (left <= 0) return false
      if (this.storeDown) {
        seen = -1
        await this.#pause(Math.min(LOOK_AGAIN, left))
        continue
      }
      seen = this.#flights.size > 0 ? -1 : this.#left
      this.scanAll({ all: true, resend: false })
      await new Promise<void>((resolve) => {
        const timer = this.#clock.setTimeout(resolve, left)
        this.#idle.push(() => {
          this.#clock.clearTimeout(timer)
          resolve()
        })
      })
      if (this.#failedAlone) await this.#pause(Math.min(PROBE, end - this.#clock.monotonic()))
      this.#failedAlone = false
    }
    return this.#connection !== undefined
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.setTimeout(resolve, Math.max(0, milliseconds))
    })
  }

  /** Stops the loop, and waits at most `timeout` milliseconds for the connection to close, because closing may hang. */
  async stop(timeout: number): Promise<void> {
    this.#running = false
    this.#inquiries.drop()
    this.#alarm.stop()
    const connection = this.#connection
    this.#connection = undefined
    // Flushes that still wait.
    for (const resolve of this.#idle.splice(0)) resolve()
    if (connection === undefined) return
    await new Promise<void>((resolve) => {
      const timer = this.#clock.setTimeout(resolve, timeout)
      const closed = (): void => {
        this.#clock.clearTimeout(timer)
        resolve()
      }
      closeOf(connection).then(closed, closed)
    })
  }

  #soon(): void {
    if (this.#deferred || !this.#running) return
    this.#deferred = true
    this.#clock.defer(() => {
      this.#deferred = false
      this.#tick()
    })
  }

  #wake(at: number): void {
    if (this.#running) this.#alarm.setBy(at)
  }

  /** @param dueAt when the alarm should have called it, or will call it next */
  #tick(dueAt: number = this.#alarm.at): void {
    if (!this.#running) return
    const now = this.#clock.monotonic()
    this.#noticeFreeze(now, dueAt)
    this.freezes.ticked(now)
    this.#nextTick = this.#observer.tick(now)
    this.#listen(now)
    for (const flight of this.#flights.lost(now)) this.#failed(flight, neverAnswered())
    for (const meter of this.#meters()) this.#walks.look(meter, now)
    this.#exchange(now)
    this.#schedule(now)
  }

  /** Notices that the process stood still. The first event after that may be a timer, an answer or the end of a connection. */
  #noticeFreeze(now: number, dueAt: number): void {
    if (!this.freezes.notice(now, dueAt)) return
    this.#flights.thawed(now)
    this.#observer.thawed(now)
  }

  #listen(now: number): void {
    const was = this.silent
    if (this.#flights.listen(now, this.storeDown, this.freezes.lately(now))) this.#soon()
    if (!this.silent || was) return
    this.#observer.silence(true, now)
    // An answer to this one would end the silence.
    this.#heartbeatAt = now
  }

  /** Whether the store is down, or seems to be. */
  get #probing(): boolean {
    return this.storeDown || this.silent
  }

  get #mayBeat(): boolean {
    return this.#probing || this.#flights.beats === 0
  }

  #exchange(now: number): void {
    const beat = now >= this.#heartbeatAt && this.#mayBeat
    if (this.storeDown) {
      // Only probes are sent until the store answers. Spans still end, and keys still fall idle.
      this.#dueKeys.drop()
      this.#inquiries.drop()
      if (this.#blocks.limit(now)) this.#observer.tooManyBlocks()
      this.#walks.walkAlone(now, BATCH)
      if (beat) this.#send(new Batch(0), [], true, now)
      return
    }
    if (!this.#flights.answered) {
      // Counts by this process's own clock may have to move to another interval, so nothing is sent yet.
      if (beat) this.#send(new Batch(0), [], true, now)
      return
    }
    if (this.#flights.size >= MOST_IN_FLIGHT) {
      if (beat) this.#send(new Batch(0), [], true, now)
      return
    }
    const batch = new Batch(BATCH)
    this.#inquiries.collect(batch)
    this.#dueKeys.collect(now, batch)
    this.#walks.collect(now, batch)
    const blocks = this.#blocks.take(now, BATCH)
    if (batch.entries.length > 0 || blocks.length > 0 || beat) this.#send(batch, blocks, beat, now)
    this.#checkIdle()
  }

  #send(batch: Batch, blocks: PendingBlock[], beat: boolean, now: number): void {
    const connection = this.#connection
    if (connection === undefined) return
    const time = this.#observer.time(now, beat)
    const request: SyncRequest = {
      ...(time !== undefined && { time }),
      entries: batch.entries,
      blocks: blocks.map((pending) => changeAt(pending, now)),
      ...(beat && {
        heartbeat: {
          ttl: this.#heartbeatEvery * HEARTBEATS_MISSED,
          cursor: this.#cursor,
          policies: this.#meters().map((meter) => meter.storePolicy),
          ...(this.#meters().some(({ counts }) => counts?.askedLease !== undefined) && { leases: true }),
          ...this.#observer.about(now),
        },
      }),
    }
    this.#left += batch.entries.length
    if (beat) {
      this.#beatenAt = now
      this.#heartbeatAt = this.#probing ? this.#probeAfter(now) : now + Math.min(this.#distance, this.#heartbeatEvery)
      if (this.#flights.answered) this.#distance *= 2
    }
    const flight = this.#flights.begin(batch, blocks, beat, now)
    syncOf(connection, request, this.#observer.nonsense).then(
      (reply) => this.#succeeded(flight, reply),
      (error: unknown) => this.#failed(flight, error),
    )
  }

  #succeeded(flight: Flight, reply: SyncReply): void {
    if (!this.#running || !this.#flights.has(flight)) return
    const now = this.#clock.monotonic()
    const { batch, blocks, beat, sent } = flight
    this.#noticeFreeze(now, this.#alarm.at)
    this.freezes.answered(sent)
    const wasProbing = this.#probing
    const wasSilent = this.#flights.succeeded(flight, now, this.storeDown)
    // The store has answered a later sync, so these are lost. Their timeouts would only make it seem down again.
    const lost = wasProbing ? this.#flights.before(sent) : []
    for (const one of lost) this.#giveUp(one, now)
    this.#observer.succeeded(reply, batch.entries.length, sent, now)
    if (wasSilent) this.#observer.silence(false, now)
    if (lost.length > 0 || this.#failedThawing) this.scanAll({ all: false, resend: false })
    this.#failedThawing = false
    for (let i = 0; i < batch.entries.length; i++) {
      const entry = batch.entries[i] as SyncRequest['entries'][number]
      const meter = batch.owners[i] as EntryOwner
      const ticket = batch.tickets[i] as Batch['tickets'][number]
      const result = reply.results[i]
      if (now >= meter.rollAt) meter.roll(now)
      if (result === undefined) {
        this.#failedAlone = true
        meter.fail(ticket, entry, now, true)
      } else meter.settle(ticket, entry, result, sent, now)
    }
    this.#blocks.answered(blocks, reply.blocks, sent, now, PROBE)
    if (beat && reply.heartbeat !== undefined) {
      this.#cursor = reply.heartbeat.cursor
      this.#observer.heartbeat(reply.heartbeat, sent, now)
    }
    this.#soonIfBusy()
    if (this.#mayBeat) this.#wake(Math.max(this.#heartbeatAt, now))
    if (this.#blocks.waiting) this.#wake(Math.max(this.#blocks.notBefore, now))
  }

  #failed(flight: Flight, error: unknown): void {
    if (!this.#running || !this.#flights.has(flight)) return
    const now = this.#clock.monotonic()
    const { batch, sent } = flight
    this.#noticeFreeze(now, this.#alarm.at)
    this.#giveUp(flight, now)
    const replacing = !this.storeDown && this.#flights.answered && this.freezes.replacing(now, sent)
    if (replacing) this.#failedThawing = true
    // Measures from the time of sending, so that a store that rejects at once and a store that hangs are probed alike.
    const again = replacing ? this.#beatenAt + LEAST_DISTANCE : this.#probeAfter(Math.max(sent, this.#beatenAt))
    this.#heartbeatAt = Math.max(again, now)
    this.#observer.failed(error, batch.entries.length, sent, now, replacing)
    this.#checkIdle()
    this.#wake(this.#heartbeatAt)
  }

  /** Ends a sync without an answer. Its counts and changes are sent again. */
  #giveUp(flight: Flight, now: number): void {
    const { batch, blocks } = flight
    this.#flights.failed(flight, now)
    for (let i = 0; i < batch.entries.length; i++) {
      const entry = batch.entries[i] as SyncRequest['entries'][number]
      ;(batch.owners[i] as EntryOwner).fail(batch.tickets[i] as Batch['tickets'][number], entry, now)
    }
    this.#blocks.failed(blocks, now)
  }

  /** The next moment of the grid, at least half a period after the last probe. */
  #probeAfter(sent: number): number {
    const every = PROBE * Math.max(1, this.#flights.beats - USUAL_PROBES + 1)
    const next = Math.ceil(this.#time.at(sent + every / 2) / every) * every
    return this.#time.monotonicAt(next)
  }

  #soonIfBusy(): void {
    const blocks = this.#blocks.waiting && this.#clock.monotonic() >= this.#blocks.notBefore
    if (this.#walks.waiting || blocks || this.#dueKeys.waiting || this.#inquiries.waiting) this.#soon()
    else this.#checkIdle()
  }

  #checkIdle(): void {
    if (this.#idle.length === 0 || this.#flights.size > 0) return
    if (!this.storeDown && (this.#walks.waiting || this.#blocks.waiting)) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #schedule(now: number): void {
    const maySend = this.#flights.size < MOST_IN_FLIGHT && (this.#flights.answered || this.storeDown)
    if (this.#walks.waiting && maySend) this.#soon()
    let at = this.storeDown || this.#flights.suspected ? this.#nextTick : Math.min(this.#nextTick, this.#flights.overdueAt)
    at = Math.min(at, this.#flights.lostAt)
    for (const meter of this.#meters()) at = Math.min(at, this.#walks.endOf(meter) ?? at, meter.wakeAt ?? meter.rollAt)
    if (this.#mayBeat) at = Math.min(at, this.#heartbeatAt)
    if (this.#blocks.waiting && !this.storeDown && maySend) at = Math.min(at, this.#blocks.notBefore)
    if (maySend) at = Math.min(at, this.#dueKeys.next)
    if (this.watching || this.freezes.lately(now)) at = Math.min(at, now + STOOD_STILL)
    this.#wake(Math.max(at, now))
  }
}

/** The distance of checks whether the store is back, during a flush, in milliseconds. */
const LOOK_AGAIN = 10

function neverAnswered(): WeirError {
  return new WeirError('WEIR_STORE_TIMEOUT', 'The store neither replied nor failed in time. Check the store and the network.')
}
