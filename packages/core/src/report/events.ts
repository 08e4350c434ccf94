import { type Channel, channel } from 'node:diagnostics_channel'
import type { WeirError } from './errors.ts'
import type { RejectionReason, RejectionSource, SyncFailureCause } from './stats.ts'
import { type NoAnswer, tell } from './user-function.ts'

/** Events of a throttler, and what their listeners get. */
export interface ThrottlerEvents {
  /** A key was blocked: exceeding the limit started its cooldown, or by hand, here or at another node. */
  blocked: { policy: string; key: string; durationMs: number; cause: 'exceeded' | 'manual' | 'remote' }
  /**
   * A block was lifted by hand, or its time is over: noticed at the key's next request, at a span's end, or by a snapshot.
   */
  unblocked: { policy: string; key: string; cause: 'manual' | 'remote' | 'expired' }
  /**
   * Requests were rejected: the sum of a second or more, at most one event per policy and second.
   */
  rejections: {
    policy: string
    rejected: number
    durationMs: number
    reasons: readonly { reason: RejectionReason; source: RejectionSource; count: number }[]
  }
  /**
   * A request goes that waited for a policy, with `acquire` or as it was held. Requests that do not go make none:
   * so there are no more of them than the policy lets go.
   */
  waited: { policy: string; key: string; durationMs: number }
  /** One exchange with the store succeeded. */
  sync: { entries: number; durationMs: number }
  /** One exchange with the store failed; what it carried is sent again. */
  syncFailed: { entries: number; durationMs: number; cause: SyncFailureCause; error: unknown }
  /** The store is down: from now on each policy decides by its `failMode`. Once per outage. */
  storeDown: { cause: unknown }
  /** The store answers again. `durationMs` is the length of the outage. */
  storeUp: { durationMs: number }
  /** Slots of a key were freed: nobody had released them within the lease (`concurrency()`). */
  slotExpired: { policy: string; key: string; units: number }
  /** A table of keys is full; once until there is room again. */
  overflow: { policy: string; maxKeys: number }
  /** The number of live nodes changed. */
  nodes: { nodes: number; before: number }
  /**
   * Another node has the same rule with another limit, cooldown, spans or option of its algorithm: a rolling change, if it lasts no longer than
   * that.
   * `changes` tells what is what here and there, for people; once for each.
   */
  peerRuleDiffers: { policy: string; node: string; changes: string }
  /**
   * Rules of a source hold from now on (`follow`). `before` is undefined in place of policies of the code; `by` and `why` are what
   * the document says of its change.
   */
  rulesApplied: { version: number; before: number | undefined; by: string | undefined; why: string | undefined }
  /** Something is wrong that a request must not suffer from, e.g. a key or cost function that fails. Once per cause. */
  warning: { error: WeirError }
}

/** The name of an event of a throttler. */
export type EventName = keyof ThrottlerEvents
/**
 * A function for `throttler.on(name, listener)`. Weir doesn't wait for it. If it throws, or its promise rejects, that becomes a process
 * warning, once per event, and has no other effect.
 */
export type Listener<E extends EventName> = (event: ThrottlerEvents[E]) => void

/**
 * The message for subscribers of `node:diagnostics_channel`: the event, and the id of its throttler. The channels are named `weir:` and the
 * event.
 */
export type DiagnosticsMessage<E extends EventName> = ThrottlerEvents[E] & { node: string }

// Channels live as long as the process; looked up once.
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
  overflow: channel('weir:overflow'),
  nodes: channel('weir:nodes'),
  peerRuleDiffers: channel('weir:peerRuleDiffers'),
  rulesApplied: channel('weir:rulesApplied'),
  warning: channel('weir:warning'),
}

/** The names of all events. */
export const EVENTS: readonly string[] = Object.keys(channels)

/** A typed emitter whose listeners can't break the emitter: that one has failed is handed to `onError`, once for each event. */
export class Emitter {
  readonly #listeners = new Map<EventName, Set<Listener<never>>>()
  /** Whose events these are, for `node:diagnostics_channel`. */
  node = ''
  /** Delivers events later, so that a listener that causes another event doesn't block the process. */
  defer: (run: () => void) => void = queueMicrotask
  /** Whether there are events that listeners have not heard of. */
  due = false
  #events: { readonly name: EventName; readonly event: ThrottlerEvents[EventName] }[] = []
  #delivering = false
  readonly #failing = new Set<EventName>()
  readonly #onError: (event: EventName, failure: NoAnswer) => void

  constructor(onError: (event: EventName, failure: NoAnswer) => void) {
    this.#onError = onError
  }

  /** Adds a listener; returns a function that removes it. */
  on<E extends EventName>(name: E, listener: Listener<E>): () => void {
    let set = this.#listeners.get(name)
    if (set === undefined) this.#listeners.set(name, (set = new Set()))
    set.add(listener as Listener<never>)
    return () => {
      set.delete(listener as Listener<never>)
    }
  }

  /** Whether anybody listens, so that an event's object need not be made. */
  has(name: EventName): boolean {
    return channels[name].hasSubscribers || this.heard(name)
  }

  /** Whether a listener of this throttler's own does. */
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

  /** Tells listeners what is due. Called at the end of what users call, where nothing is half done. */
  deliver(): void {
    if (!this.due || this.#delivering) return
    const events = this.#events
    this.#events = []
    this.due = false
    this.#delivering = true
    for (const { name, event } of events) {
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
