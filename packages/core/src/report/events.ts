import { type Channel, channel } from 'node:diagnostics_channel'
import type { WeirError } from './errors.ts'
import type { RejectionReason, RejectionSource, SyncFailureCause } from './stats.ts'
import { type NoAnswer, tell } from './user-function.ts'

/** The events of a throttler, and the objects that their listeners get. Durations are in milliseconds. */
export interface ThrottlerEvents {
  /**
   * A key was blocked: `'exceeded'` or `'manual'` here, or `'remote'`.
   *
   * `'exceeded'` is a cooldown that started here, and `'remote'` a block by another process.
   */
  blocked: { policy: string; key: string; durationMs: number; cause: 'exceeded' | 'manual' | 'remote' }
  /**
   * A block ended: `'manual'`, `'remote'` or `'expired'`.
   *
   * Weir notices an expiry at the key's next request, at a span's end, or when a snapshot is taken.
   */
  unblocked: { policy: string; key: string; cause: 'manual' | 'remote' | 'expired' }
  /**
   * Requests were rejected: one sum per policy, at most once a second.
   *
   * The sums are over `durationMs`, which is at least one second.
   */
  rejections: {
    policy: string
    rejected: number
    durationMs: number
    reasons: readonly { reason: RejectionReason; source: RejectionSource; count: number }[]
  }
  /**
   * A request that waited was allowed.
   *
   * It waited with `acquire` or for a delay. Waiting requests that fail make no event, so there are never more events than allowed
   * requests.
   */
  waited: { policy: string; key: string; durationMs: number }
  /**
   * A sync succeeded.
   *
   * `entries` is the number of its key writes.
   */
  sync: { entries: number; durationMs: number }
  /** A sync failed. Its counts are sent again. */
  syncFailed: { entries: number; durationMs: number; cause: SyncFailureCause; error: unknown }
  /**
   * The store is down, once per outage.
   *
   * From now on each policy decides by its `failMode`.
   */
  storeDown: { cause: unknown }
  /**
   * The store answers again.
   *
   * `durationMs` is the length of the outage.
   */
  storeUp: { durationMs: number }
  /**
   * Slots were freed after `maxDuration`.
   *
   * They were not released (`concurrency()`).
   */
  slotExpired: { policy: string; key: string; units: number }
  /**
   * A reservation settled itself.
   *
   * Nothing settled it before its `ttl`. `counted` is the units that count for it.
   */
  reservationExpired: { policy: string; key: string; reserved: number; counted: number }
  /**
   * A table of keys is full.
   *
   * It is not repeated until the table has had capacity again.
   */
  overflow: { policy: string; maxKeys: number }
  /** The number of live processes changed. */
  nodes: { nodes: number; before: number }
  /**
   * Another process has the same rule with another limit, cooldown, number of spans or algorithm option.
   *
   * Once per difference. This is expected during a rolling deploy. `changes` lists the values of both processes, for people.
   */
  peerRuleDiffers: { policy: string; node: string; changes: string }
  /**
   * Rules of a source apply from now on.
   *
   * `follow` reports it. `before` is undefined if they replaced policies of the code. `by` and `why` are the document's notes on its
   * change.
   *
   * @see `@weir/core/docs/guides/rules.md`
   */
  rulesApplied: { version: number; before: number | undefined; by: string | undefined; why: string | undefined }
  /**
   * Something is wrong, but no request fails because of it.
   *
   * For example a key or cost function throws. Once per cause.
   *
   * @see `@weir/core/docs/reference/errors.md#warnings`
   */
  warning: { error: WeirError }
}

/** The name of an event of a throttler. */
export type EventName = keyof ThrottlerEvents
/**
 * A function for `throttler.on(name, listener)`. Weir doesn't wait for it. If it throws, or its promise rejects, Weir emits a process
 * warning, once per event. The failure has no other effect.
 */
export type Listener<E extends EventName> = (event: ThrottlerEvents[E]) => void

/**
 * The message for subscribers of `node:diagnostics_channel`: the event, and the id of its throttler as `node`. Each channel is named
 * `weir:` and the event, e.g. `weir:storeDown`.
 */
export type DiagnosticsMessage<E extends EventName> = ThrottlerEvents[E] & { node: string }

// Channels live as long as the process, so each is looked up once.
const channels: Readonly<Record<EventName, Channel>> = {
  blocked: channel('weir:blocked'),
  unblocked: channel('weir:unblocked'),
  rejections: channel('weir:rejections'),
  waited: channel('weir:waited'),
  sync: channel('weir:sync'),
  syncFailed: channel('weir:syncFailed'),
  storeDown: channel('weir:storeDown'),
  storeUp: channel('weir:storeUp'),
  slotExpired: channel('weir:slotExpired'),
  reservationExpired: channel('weir:reservationExpired'),
  overflow: channel('weir:overflow'),
  nodes: channel('weir:nodes'),
  peerRuleDiffers: channel('weir:peerRuleDiffers'),
  rulesApplied: channel('weir:rulesApplied'),
  warning: channel('weir:warning'),
}

/** The names of all events. */
export const EVENTS: readonly string[] = Object.keys(channels)

/** A typed emitter whose listeners can't break it. The failure of a listener is passed to `onError`, once for each event. */
export class Emitter {
  readonly #listeners = new Map<EventName, Set<Listener<never>>>()
  /** The id of the throttler, for `node:diagnostics_channel`. */
  node = ''
  /** Delivers events later, so that a listener that causes another event doesn't block the process. */
  defer: (run: () => void) => void = queueMicrotask
  /** Whether there are events that listeners have not received. */
  due = false
  #events: { readonly name: EventName; readonly event: ThrottlerEvents[EventName] }[] = []
  #delivering = false
  #recorded: readonly EventName[] = []
  /** One for each copy of the code that reads the state: an application may load the ESM and the CommonJS build. */
  readonly #recorders: ((name: EventName, event: ThrottlerEvents[EventName]) => void)[] = []
  readonly #failing = new Set<EventName>()
  readonly #onError: (event: EventName, failure: NoAnswer) => void

  constructor(onError: (event: EventName, failure: NoAnswer) => void) {
    this.#onError = onError
  }

  /** Adds a listener, and returns a function that removes it. */
  on<E extends EventName>(name: E, listener: Listener<E>): () => void {
    let set = this.#listeners.get(name)
    if (set === undefined) this.#listeners.set(name, (set = new Set()))
    set.add(listener as Listener<never>)
    return () => {
      set.delete(listener as Listener<never>)
    }
  }

  /** Passes these events to a function from now on. It counts as no listener. */
  record(names: readonly EventName[], recorder: (name: EventName, event: ThrottlerEvents[EventName]) => void): void {
    this.#recorded = names
    this.#recorders.push(recorder)
  }

  /** Whether the event has a listener, a subscriber or a recorder. Without one, its object need not be made. */
  has(name: EventName): boolean {
    return channels[name].hasSubscribers || this.heard(name) || this.#recorded.includes(name)
  }

  /** Whether the event has a listener on this throttler. */
  heard(name: EventName): boolean {
    const set = this.#listeners.get(name)
    return set !== undefined && set.size > 0
  }

  /**
   * Listeners get an event of a synchronous call before that call returns, and any other event in a microtask. They never run in the middle
   * of the code that makes the event, because they may change everything that it works on.
   */
  emit<E extends EventName>(name: E, event: ThrottlerEvents[E]): void {
    this.#events.push({ name, event })
    if (this.due) return
    this.due = true
    if (!this.#delivering) queueMicrotask(() => this.deliver())
  }

  /** Delivers the due events. It is called at the end of each public call, when no change is half done. */
  deliver(): void {
    if (!this.due || this.#delivering) return
    const events = this.#events
    this.#events = []
    this.due = false
    this.#delivering = true
    for (const { name, event } of events) {
      if (this.#recorded.includes(name)) for (const record of this.#recorders) record(name, event)
      if (channels[name].hasSubscribers) channels[name].publish({ ...event, node: this.node })
      const set = this.#listeners.get(name)
      if (set === undefined) continue
      for (const listener of [...set]) tell((failure) => this.#failed(name, failure), listener as Listener<EventName>, event)
    }
    this.#delivering = false
    if (this.due) this.defer(() => this.deliver())
  }

  #failed(name: EventName, failure: NoAnswer): void {
    if (this.#failing.has(name)) return
    this.#failing.add(name)
    this.#onError(name, failure)
  }
}
