import { Batch, type EntryOwner } from './batch.ts'
import type { Clock, TimerHandle } from './clock.ts'
import type { Counter, ScanOptions } from './counter.ts'
import { WeirError } from './errors.ts'
import type { BlockChange, HeartbeatReply, HeartbeatRequest, StoreConnection, SyncReply, SyncRequest } from './store.ts'
import type { StoreTime } from './store-time.ts'
import { spanEnd } from './time.ts'

/** What happens to a sync, as its throttler is told. Times are of the monotonic clock. */
export interface SyncObserver {
  succeeded(reply: SyncReply, entries: number, sent: number, received: number): void
  heartbeat(reply: HeartbeatReply, sent: number, received: number): void
  failed(error: unknown, entries: number, sent: number, received: number): void
  /** Called at each tick, before anything is sent. Returns when the next one must come at the latest. */
  tick(now: number): number
  /** The store owes an answer for much longer than usual, or has answered after that. */
  silence(silent: boolean, now: number): void
  /** The time that the node goes by, where the store needs it. */
  time(now: number, heartbeat: boolean): number | undefined
  /** What a heartbeat is to say of this node. */
  about(now: number): Pick<HeartbeatRequest, 'status' | 'watch'>
}

export interface SyncLoopOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly counters: () => readonly Counter[]
  /** Milliseconds between two heartbeats. */
  readonly heartbeat: number
  /** The store's clock. */
  readonly time: StoreTime
  readonly observer: SyncObserver
}

/** A walk over a counter's slots at the end of a span. */
interface Scan {
  readonly counter: Counter
  readonly options: ScanOptions
  from: number
}

/** An exchange that is under way. */
interface Flight {
  readonly batch: Batch
  readonly sent: number
  overdue: boolean
}

interface PendingBlock {
  readonly change: BlockChange
  readonly counter: Counter
  readonly until: number
}

/** Most entries of one batch: building and settling one takes about a millisecond. */
const BATCH = 200
/** Batches under way at once; keys that fall due meanwhile wait for one of them to return. */
const MOST_IN_FLIGHT = 4
/**
 * While the store is away it is asked this often whether it is back, in milliseconds: on a grid of the store's clock, on
 * which intervals of whole seconds begin. So all nodes ask, and are back, at the same moment, and know of a store that
 * came back before an interval from the interval's begin on.
 */
const PROBE = 200
/** A node that is not heard of for so many heartbeats no longer counts as live. */
const HEARTBEATS_MISSED = 4
/** A span's counts are sent within this part of the next one, at random, so that nodes do not all write at once. */
const JITTER = 0.1
/** An answer is overdue after so many milliseconds, or after so many times as long as usual, whichever is later. */
const OVERDUE = 250
const OVERDUE_TIMES = 3
const USUAL_WEIGHT = 0.2
/** Timers of Node.js hold 31 bits of milliseconds; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1

/**
 * Exchanges counts with the store: due keys at once, all others at the end of their span, a heartbeat each second, a
 * probe while the store is away. One timer for everything, nothing per key.
 */
export class SyncLoop {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #counters: () => readonly Counter[]
  readonly #heartbeatEvery: number
  readonly #time: StoreTime
  readonly #observer: SyncObserver
  #connection: StoreConnection | undefined
  #timer: TimerHandle | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #deferred = false
  #running = false
  /** Keys that fell due: parallel arrays, in the order in which they did. */
  #dueCounters: Counter[] = []
  #dueSlots: number[] = []
  #dueTimes: number[] = []
  readonly #spanAt = new Map<Counter, number>()
  #scans: Scan[] = []
  /** A walk that was to send everything again came to a key while the store was away. */
  #resendLater = false
  /** Changes of blocks to send, by policy and key: only the newest of a key counts. Oldest first. */
  readonly #blocks = new Map<string, PendingBlock>()
  /** The newest change of each key that the store has not answered yet: waiting or under way. Older ones no longer count. */
  readonly #newestBlocks = new Map<string, PendingBlock>()
  /** Not before this time: part of the store (one slot of a cluster) did not take the last ones. */
  #blocksAt = Number.NEGATIVE_INFINITY
  #inFlight = 0
  /** The store has answered once, so its time is known. */
  #answered = false
  /** When the observer wants to be called next. */
  #nextTick = Number.POSITIVE_INFINITY
  #entriesSent = 0
  /** Entries came back without an answer while others had theirs: part of the store is away. */
  #failedAlone = false
  #heartbeatAt = Number.NEGATIVE_INFINITY
  #heartbeatInFlight = false
  #cursor: string | undefined
  #idle: (() => void)[] = []
  degraded = false
  /** The store owes an answer for much longer than usual. */
  silent = false
  /** Since when nothing was heard of the store although something is under way. */
  #waitingSince = Number.POSITIVE_INFINITY
  /** What is under way. */
  readonly #flights = new Set<Flight>()
  /** Mean time to an answer, in milliseconds. */
  #usual = 0
  /** The silence was noticed in an earlier turn of the event loop, so that an answer that only had to be read would be known. */
  #suspected = false

  constructor(options: SyncLoopOptions) {
    this.#clock = options.clock
    this.#random = options.random
    this.#counters = options.counters
    this.#heartbeatEvery = options.heartbeat
    this.#time = options.time
    this.#observer = options.observer
  }

  start(connection: StoreConnection | undefined): void {
    this.#connection = connection
    this.#running = true
    this.#tick()
  }

  /** Asks for an exchange of a key at `at`, or as soon after it as a batch is free. */
  due(counter: Counter, slot: number, at: number): void {
    this.#dueCounters.push(counter)
    this.#dueSlots.push(slot)
    this.#dueTimes.push(at)
    if (at <= this.#clock.monotonic()) this.#soon()
    else this.#wake(at)
  }

  /** Ticks soon, because the observer has something new to look after. */
  wakeNow(): void {
    this.#soon()
  }

  changeBlock(counter: Counter, change: BlockChange, until: number): void {
    const id = blockId(change)
    const pending = { counter, change, until }
    this.#blocks.delete(id)
    this.#blocks.set(id, pending)
    this.#newestBlocks.set(id, pending)
    this.#soon()
  }

  /** Walks over all keys of all policies now: after an outage, or when the store lost its data. */
  scanAll(options: ScanOptions): void {
    // What a walk that is not over yet was to send again must still be sent again.
    const resend = options.resend || this.#resendLater || this.#scans.some((scan) => scan.options.resend)
    this.#resendLater = false
    this.#scans = this.#counters().map((counter) => ({ counter, options: { ...options, resend }, from: 0 }))
    this.#soon()
  }

  /** Sends what is left of counters that are no longer used. */
  retire(counters: readonly Counter[]): void {
    for (const counter of counters) {
      this.#spanAt.delete(counter)
      this.#scans.push({ counter, options: { all: true, resend: false }, from: 0 })
    }
    this.#soon()
  }

  /** The store's next heartbeat is to hand out everything again. */
  forgetCursor(): void {
    this.#cursor = undefined
  }

  /** Sends all that is left; resolves when it is done, or after `deadline` milliseconds. */
  async flush(deadline: number): Promise<void> {
    const end = this.#clock.monotonic() + deadline
    // A store that is away may be back just now, and one that answers may have lost its data since the last heartbeat.
    this.#heartbeatAt = Number.NEGATIVE_INFINITY
    this.#soon()
    // A key whose exchange is under way is passed over, so look again until there was nothing to send.
    for (let sent = -1; (sent !== this.#entriesSent || this.degraded) && this.#connection !== undefined; ) {
      const left = end - this.#clock.monotonic()
      if (left <= 0) return
      if (this.degraded) {
        sent = -1
        await this.#pause(Math.min(LOOK_AGAIN, left))
        continue
      }
      sent = this.#inFlight > 0 ? -1 : this.#entriesSent
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
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.setTimeout(resolve, Math.max(0, milliseconds))
    })
  }

  /** Ends all that runs, and waits at most `deadline` milliseconds for the connection to close: what closes it may hang. */
  async stop(deadline: number): Promise<void> {
    this.#running = false
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
    const connection = this.#connection
    this.#connection = undefined
    if (connection === undefined) return
    await new Promise<void>((resolve) => {
      const timer = this.#clock.setTimeout(resolve, deadline)
      const closed = (): void => {
        this.#clock.clearTimeout(timer)
        resolve()
      }
      connection.close().then(closed, closed)
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
    if (at >= this.#timerAt || !this.#running) return
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer)
    this.#timerAt = at
    this.#timer = this.#clock.setTimeout(
      () => {
        this.#timer = undefined
        this.#timerAt = Number.POSITIVE_INFINITY
        this.#tick()
      },
      Math.min(LONGEST_TIMER, Math.max(0, at - this.#clock.monotonic())),
    )
  }

  #tick(): void {
    if (!this.#running) return
    const now = this.#clock.monotonic()
    this.#nextTick = this.#observer.tick(now)
    this.#listen(now)
    for (const counter of this.#counters()) this.#checkSpan(counter, now)
    if (this.#connection === undefined) this.#walkAlone(now)
    else this.#exchange(now)
    this.#schedule(now)
  }

  /**
   * A store that hangs is known to be away only at its deadline, which has to be long. Until then nodes would each admit what
   * is left for all of them, so they decide by share as soon as an answer is overdue.
   */
  #listen(now: number): void {
    if (this.degraded || now < this.#overdueAt()) {
      this.#suspected = false
      return
    }
    if (!this.#suspected) {
      this.#suspected = true
      this.#soon()
      return
    }
    const patience = this.#patience
    if (!this.silent && now >= this.#waitingSince + patience) {
      this.silent = true
      this.#observer.silence(true, now)
    }
    // Others may be answered all the same: then a part of the store has fallen silent.
    for (const flight of this.#flights) {
      if (flight.overdue || now < flight.sent + patience) continue
      flight.overdue = true
      for (let i = 0; i < flight.batch.owners.length; i++) {
        ;(flight.batch.owners[i] as EntryOwner).overdue(flight.batch.tickets[i] as Batch['tickets'][number])
      }
    }
  }

  /** When something must be thought of as overdue next. */
  #overdueAt(): number {
    if (!this.#answered) return Number.POSITIVE_INFINITY
    let since = this.silent ? Number.POSITIVE_INFINITY : this.#waitingSince
    for (const { sent, overdue } of this.#flights) if (!overdue) since = Math.min(since, sent)
    return since + this.#patience
  }

  get #patience(): number {
    return Math.max(OVERDUE, OVERDUE_TIMES * this.#usual)
  }

  /** An exchange has come to an end, well or badly. */
  #heard(now: number): boolean {
    const was = this.silent
    this.silent = false
    this.#waitingSince = this.#inFlight > 0 ? now : Number.POSITIVE_INFINITY
    return was
  }

  #checkSpan(counter: Counter, now: number): void {
    if (now >= counter.rollAt) counter.roll(now)
    const at = this.#spanAt.get(counter)
    if (at !== undefined && now < at) return
    const { interval, spans } = counter.policy
    const end = counter.time.monotonicAt(spanEnd(counter.time.at(now), interval, spans))
    const jitter = counter.policy.enforcement === 'proof' ? this.#random() * JITTER * (interval / spans) : 0
    this.#spanAt.set(counter, Math.max(end + jitter, now + 1))
    if (at === undefined || this.#scans.some((scan) => scan.counter === counter && scan.from === 0)) return
    this.#scans.push({ counter, options: { all: false, resend: false }, from: 0 })
  }

  /** Without a store a span's end only frees idle keys. */
  #walkAlone(now: number): void {
    const scan = this.#scans[0]
    if (scan === undefined) return
    if (scan.options.resend) this.#resendLater = true
    scan.from = scan.counter.scan(scan.from, now, new Batch(BATCH), scan.options)
    if (scan.from < 0) this.#scans.shift()
  }

  #exchange(now: number): void {
    const beat = now >= this.#heartbeatAt && !this.#heartbeatInFlight
    if (this.degraded) {
      // Nothing but probes until the store answers; spans still end, and keys still fall idle.
      this.#dropDue()
      this.#walkAlone(now)
      if (beat && this.#inFlight === 0) this.#send(new Batch(0), [], true, now)
      return
    }
    if (!this.#answered) {
      // What is counted by this node's own clock may have to move to another interval, so nothing is sent yet.
      if (beat) this.#send(new Batch(0), [], true, now)
      return
    }
    if (this.#inFlight >= MOST_IN_FLIGHT) return
    const batch = new Batch(BATCH)
    this.#takeDue(batch, now)
    while (!batch.full && this.#scans.length > 0) {
      const scan = this.#scans[0] as Scan
      scan.from = scan.counter.scan(scan.from, now, batch, scan.options)
      if (scan.from < 0) this.#scans.shift()
      else break
    }
    const blocks = this.#takeBlocks(now)
    if (batch.entries.length > 0 || blocks.length > 0 || beat) this.#send(batch, blocks, beat, now)
    this.#checkIdle()
  }

  #takeBlocks(now: number): PendingBlock[] {
    const taken: PendingBlock[] = []
    if (now < this.#blocksAt) return taken
    for (const [id, pending] of this.#blocks) {
      if (taken.length === BATCH) break
      taken.push(pending)
      this.#blocks.delete(id)
    }
    return taken
  }

  /** Whether the store's answer to a change still counts; then it is done with. */
  #finishBlock(pending: PendingBlock): boolean {
    const id = blockId(pending.change)
    return this.#newestBlocks.get(id) === pending && this.#newestBlocks.delete(id)
  }

  /** Queues a change that did not reach the store again, unless a newer one of its key has come, or its time is over. */
  #sendBlockAgain(pending: PendingBlock, now: number): void {
    const id = blockId(pending.change)
    if (this.#newestBlocks.get(id) !== pending) return
    if (pending.until > now || pending.change.kind === 'lift') this.#blocks.set(id, pending)
    else this.#newestBlocks.delete(id)
  }

  #takeDue(batch: Batch, now: number): void {
    const counters = this.#dueCounters
    const slots = this.#dueSlots
    const times = this.#dueTimes
    if (counters.length === 0) return
    this.#dueCounters = []
    this.#dueSlots = []
    this.#dueTimes = []
    for (let i = 0; i < counters.length; i++) {
      const counter = counters[i] as Counter
      const slot = slots[i] as number
      const at = times[i] as number
      if (at <= now + EPSILON && !batch.full) counter.collect(slot, now, batch)
      else {
        this.#dueCounters.push(counter)
        this.#dueSlots.push(slot)
        this.#dueTimes.push(at)
      }
    }
  }

  #dropDue(): void {
    for (let i = 0; i < this.#dueCounters.length; i++) (this.#dueCounters[i] as Counter).undue(this.#dueSlots[i] as number)
    this.#dueCounters = []
    this.#dueSlots = []
    this.#dueTimes = []
  }

  #send(batch: Batch, blocks: PendingBlock[], beat: boolean, now: number): void {
    const connection = this.#connection
    if (connection === undefined) return
    const time = this.#observer.time(now, beat)
    const request: SyncRequest = {
      ...(time !== undefined && { time }),
      entries: batch.entries,
      blocks: blocks.map(({ change, until }) => ({ ...change, remaining: change.remaining === 0 ? 0 : Math.max(1, until - now) })),
      ...(beat && {
        heartbeat: {
          ttl: this.#heartbeatEvery * HEARTBEATS_MISSED,
          cursor: this.#cursor,
          policies: this.#counters().map((counter) => counter.wire),
          ...this.#observer.about(now),
        },
      }),
    }
    this.#inFlight++
    this.#waitingSince = Math.min(this.#waitingSince, now)
    this.#entriesSent += batch.entries.length
    if (beat) {
      this.#heartbeatInFlight = true
      this.#heartbeatAt = now + this.#heartbeatEvery
    }
    const flight: Flight = { batch, sent: now, overdue: false }
    this.#flights.add(flight)
    exchange(connection, request).then(
      (reply) => {
        this.#flights.delete(flight)
        this.#succeeded(batch, blocks, beat, reply, now)
      },
      (error: unknown) => {
        this.#flights.delete(flight)
        this.#failed(batch, blocks, beat, error, now)
      },
    )
  }

  #succeeded(batch: Batch, blocks: PendingBlock[], beat: boolean, reply: SyncReply, sent: number): void {
    if (!this.#running) return
    const now = this.#clock.monotonic()
    this.#inFlight--
    this.#usual = this.#answered ? this.#usual + (now - sent - this.#usual) * USUAL_WEIGHT : now - sent
    this.#answered = true
    const wasSilent = this.#heard(now)
    if (beat) this.#heartbeatInFlight = false
    this.#observer.succeeded(reply, batch.entries.length, sent, now)
    if (wasSilent) this.#observer.silence(false, now)
    for (let i = 0; i < batch.entries.length; i++) {
      const entry = batch.entries[i] as SyncRequest['entries'][number]
      const counter = batch.owners[i] as EntryOwner
      const ticket = batch.tickets[i] as Batch['tickets'][number]
      const result = reply.results[i]
      if (now >= counter.rollAt) counter.roll(now)
      if (result === undefined) {
        this.#failedAlone = true
        counter.fail(ticket, entry, now, true)
      } else counter.settle(ticket, entry, result, sent, now)
    }
    blocks.forEach((pending, i) => {
      const remaining = reply.blocks[i]
      if (remaining === undefined) {
        this.#blocksAt = now + PROBE
        this.#sendBlockAgain(pending, now)
      } else if (this.#finishBlock(pending) && pending.change.kind !== 'lift' && remaining > 0) {
        // The first node's end holds for all: this node's own may have to move.
        const slot = pending.counter.locateWire(pending.change.key)
        if (slot >= 0) pending.counter.blockAnswered(slot, remaining, now, now - sent)
      }
    })
    if (beat && reply.heartbeat !== undefined) {
      this.#cursor = reply.heartbeat.cursor
      this.#observer.heartbeat(reply.heartbeat, sent, now)
    }
    this.#soonIfBusy()
    if (!this.#heartbeatInFlight) this.#wake(Math.max(this.#heartbeatAt, now))
    if (this.#blocks.size > 0) this.#wake(Math.max(this.#blocksAt, now))
  }

  #failed(batch: Batch, blocks: PendingBlock[], beat: boolean, error: unknown, sent: number): void {
    if (!this.#running) return
    const now = this.#clock.monotonic()
    this.#inFlight--
    this.#heard(now)
    if (beat) this.#heartbeatInFlight = false
    for (let i = 0; i < batch.entries.length; i++) {
      const entry = batch.entries[i] as SyncRequest['entries'][number]
      ;(batch.owners[i] as EntryOwner).fail(batch.tickets[i] as Batch['tickets'][number], entry, now)
    }
    for (const pending of blocks) this.#sendBlockAgain(pending, now)
    // Spaced by the moment of sending: a store that refuses at once and one that hangs are probed alike.
    this.#heartbeatAt = Math.max(this.#probeAfter(sent), now)
    this.#observer.failed(error, batch.entries.length, sent, now)
    this.#checkIdle()
    this.#wake(this.#heartbeatAt)
  }

  /** The next moment of the grid; the first one after others failed must not follow too soon. */
  #probeAfter(sent: number): number {
    const next = Math.ceil(this.#time.at(sent + PROBE / 2) / PROBE) * PROBE
    return this.#time.monotonicAt(next)
  }

  #soonIfBusy(): void {
    const blocks = this.#blocks.size > 0 && this.#clock.monotonic() >= this.#blocksAt
    if (this.#scans.length > 0 || blocks || this.#dueSlots.length > 0) this.#soon()
    else this.#checkIdle()
  }

  #checkIdle(): void {
    if (this.#idle.length === 0 || this.#inFlight > 0) return
    if (!this.degraded && (this.#scans.length > 0 || this.#blocks.size > 0)) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #schedule(now: number): void {
    const maySend = this.#inFlight < MOST_IN_FLIGHT && (this.#answered || this.degraded || this.#connection === undefined)
    if (this.#scans.length > 0 && maySend) this.#soon()
    let at = this.degraded ? this.#nextTick : Math.min(this.#nextTick, this.#overdueAt())
    for (const counter of this.#counters()) at = Math.min(at, this.#spanAt.get(counter) ?? at, counter.rollAt)
    // While the store is away one probe at a time is under way; the last exchange that returns wakes the loop.
    const mayBeat = !this.#heartbeatInFlight && (!this.degraded || this.#inFlight === 0)
    if (this.#connection !== undefined && mayBeat) at = Math.min(at, this.#heartbeatAt)
    if (this.#blocks.size > 0 && !this.degraded && maySend) at = Math.min(at, this.#blocksAt)
    if (maySend) for (const due of this.#dueTimes) at = Math.min(at, due)
    this.#wake(Math.max(at, now))
  }
}

/** While a flush waits for the store it looks for its return this often, in milliseconds. */
const LOOK_AGAIN = 10

/** Timers fire on whole milliseconds; what is due within this time travels along. */
const EPSILON = 0.5

/** Neither half contains NUL before the first one of the other, so no two changes share an id unless they are of one key. */
function blockId({ policy, key }: BlockChange): string {
  return `${policy.id}\u0000${key}`
}

/** A store that breaks its contract (throws, answers nonsense) counts as one that failed: it must not end the process. */
async function exchange(connection: StoreConnection, request: SyncRequest): Promise<SyncReply> {
  const reply = await connection.sync(request)
  if (!Array.isArray(reply?.results) || !Array.isArray(reply.blocks)) {
    throw new WeirError('WEIR_STORE_REPLY', 'The store answered without results.')
  }
  return reply
}
