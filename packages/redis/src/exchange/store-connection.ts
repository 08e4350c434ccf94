import type { WeirError } from '@weir/core'
import {
  type AuditLog,
  afterSilence,
  closedPart,
  codeNotLoaded,
  type Decider,
  type StoreConnection,
  type StoreNode,
  type SyncReply,
  type SyncRequest,
} from '@weir/core/sync'
import type { Link, Target } from '../connection/link.ts'
import type { CheckedOptions } from '../connection/options.ts'
import { asWeirError, isSetting } from '../connection/unavailable.ts'
import type { Keys } from '../keys/keys.ts'
import { Exchange, type ExchangeContext } from './exchange.ts'
import { Shard, timedOut } from './shard.ts'
import { Unreadable } from './unreadable.ts'
import { isOwnAnnouncement, parseAnnouncements } from './wire.ts'

/** Part of the timeout within which a server must answer while it is down. */
const PROBE_PATIENCE = 0.5

/**
 * Milliseconds within which another part of a Cluster must have answered to count as up. Heartbeats call all parts, usually once a second.
 */
const HEARD_LATELY = 2_000

/** The connection of one process to Redis. */
export class RedisConnection implements StoreConnection {
  readonly #node: StoreNode
  readonly #keys: Keys
  readonly #timeout: number
  readonly #address: string
  readonly #link: Link
  readonly #context: ExchangeContext
  readonly #unreadable: Unreadable
  #losses = 0
  #closed = false
  /** The last sync got no reply. */
  #failing = false

  constructor(node: StoreNode, target: Target, keys: Keys, options: CheckedOptions) {
    const { clock, id: nodeId } = node
    const { timeout } = options
    this.#node = node
    this.#keys = keys
    this.#timeout = timeout
    this.#address = target.address
    // The name contains the database, because publish/subscribe ignores it, and the version of the layout, because later messages may
    // differ.
    const channel = options.publish ? `${options.namespace}:1:${target.db}` : undefined
    const link = target.open({ clock, timeout, channel, received: (message) => this.#received(message) })
    this.#link = link
    this.#unreadable = new Unreadable(clock, (error) => node.warned?.(error))
    const lost = (): void => {
      this.#losses++
    }
    let told = false
    const notLoaded = (cause: unknown): void => {
      if (told) return
      told = true
      node.warned?.(codeNotLoaded('Redis', cause))
    }
    this.#context = {
      keys,
      shards: keys.shards.map((bucket) => new Shard({ keys: bucket, nodeId, clock, link, timeout, lost })),
      channel,
      nodes: 1,
      reference: undefined,
      heardAt: Number.NEGATIVE_INFINITY,
      generation: () => String(this.#losses),
      lost: (names) => this.#unreadable.report(names),
      blocksLost: lost,
      notLoaded,
    }
  }

  sync(request: SyncRequest): Promise<SyncReply> {
    if (this.#closed) return Promise.reject(closedPart('The connection to the store'))
    const { clock } = this.#node
    return new Promise((resolve, reject) => {
      const begun = clock.monotonic()
      let settled = false
      let cancel = (): void => {}
      const waitForAnswer = (): void => {
        if (settled) return
        cancel()
        // While the store is down each sync is a probe. A lost probe must not delay the next one for long.
        const timeout = this.#failing ? this.#timeout * PROBE_PATIENCE : this.#timeout
        cancel = afterSilence(clock, timeout, () => {
          settle(timedOut(timeout))
          this.#link.silent(!exchange.answered && this.#context.shards.length === 1)
        })
      }
      const exchange = new Exchange(request, this.#context, begun, waitForAnswer)
      const settle = (error: unknown): void => {
        if (settled) return
        settled = true
        cancel()
        this.#link.release()
        const answered = exchange.answered || this.#partAway(request)
        this.#failing = !answered
        if (answered) resolve(exchange.reply((begun + clock.monotonic()) / 2))
        else reject(this.#failed(error))
      }
      waitForAnswer()
      this.#link.hold()
      this.#run(exchange).then(() => settle(exchange.error), settle)
    })
  }

  async decider(): Promise<Decider> {
    const { RedisDecider } = await import('../central/decider.ts')
    return new RedisDecider(this.#link, this.#keys, this.#node.clock, this.#node.id)
  }

  async audit(): Promise<AuditLog> {
    const { auditAt } = await import('./audit.ts')
    return auditAt(this.#link, this.#keys, this.#node.clock, (error) => this.#failed(error))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const { clock, id } = this.#node
    const registry = this.#keys.shards[0]?.nodes
    // Removes this process from the live ones, so that others don't wait for its entry to expire. If that fails, it expires.
    if (registry !== undefined && this.#link.ready) {
      this.#link.hold()
      await new Promise<void>((resolve) => {
        const timer = clock.setTimeout(resolve, this.#timeout)
        const done = (): void => {
          clock.clearTimeout(timer)
          resolve()
        }
        this.#link.remove(registry, id).then(done, done)
      })
      this.#link.release()
    }
    this.#link.close()
  }

  /**
   * Returns whether a sync without a reply concerned only a part of a Cluster that is down. It contained no heartbeat, which calls all
   * parts, and another part answered lately. Then only its keys have failed, not the store.
   */
  #partAway(request: SyncRequest): boolean {
    const { shards: buckets, reference, heardAt } = this.#context
    if (request.heartbeat !== undefined || buckets.length === 1 || reference === undefined) return false
    return this.#node.clock.monotonic() - heardAt <= HEARD_LATELY
  }

  /** Warns about errors that last until a setting changes, such as a wrong password, because an application may not listen to events. */
  #failed(error: unknown): WeirError {
    const told = asWeirError(error, this.#address)
    if (isSetting(told)) this.#node.warned?.(told)
    return told
  }

  async #run(exchange: Exchange): Promise<void> {
    if (!(await this.#link.connected())) throw this.#link.lastError ?? new Error('not connected')
    await exchange.run()
  }

  #received(message: string): void {
    if (this.#closed || isOwnAnnouncement(message, this.#node.id)) return
    let announcements: ReturnType<typeof parseAnnouncements>
    try {
      announcements = parseAnnouncements(message)
    } catch {
      // The message is from another program or an unknown version. Announcements may be lost, so it is ignored.
      return
    }
    for (const announcement of announcements) this.#node.announced(announcement)
  }
}
