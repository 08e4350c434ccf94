import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { systemClock } from '@weir/core'
import type { RulesSource } from '@weir/core/rules'
import { closedPart, invalidOption } from '@weir/core/sync'
import { asWeirError, Link } from '../gateway/link.ts'
import { get, last, put, removeFrom, unchanged, watchOfOne } from '../gateway/operations.ts'
import { type CheckedTarget, checkOptions, checkTarget, type EtcdStoreOptions, type EtcdTarget } from '../gateway/options.ts'
import { type Held, partOf } from '../gateway/replies.ts'
import { Watch } from '../gateway/watch.ts'

/** Options of `etcdRules`, after the addresses. */
export interface EtcdRulesOptions extends EtcdStoreOptions {
  /**
   * Names the document, so that one etcd can store several. 1 to 100 letters, digits or any of `_ . -`.
   *
   * @default 'default'
   */
  readonly name?: string
}

/** Rules in a key of etcd. It connects when it is first used, and does not keep the process alive. */
export interface EtcdRules extends RulesSource {
  read(): Promise<string | undefined>
  watch(changed: () => void): () => void
  replace(before: string | undefined, text: string): Promise<boolean>
  history(most: number): Promise<readonly string[]>
  /** Closes the connections. Any later use throws. */
  close(): void
}

/** Milliseconds between two reads of the document, because a watch may end without a message. */
const INTERVAL = 5_000
/** The most documents of the history. */
const MOST_KEPT = 100
/** The most documents that are read at once. */
const PAGE = 10
/** The most bytes of a document in the history, uncompressed. */
const LONGEST = 16_000_000

/**
 * Reads and writes rules in a key of etcd 3.4 or newer, such as `weir/rules/default`, whose value is the document. etcd accepts 1.5 MB in a
 * request by default (`--max-request-bytes`).
 *
 * @param target - the addresses of members of one cluster, or `{ endpoints, username, password, tls }`
 * @throws {WeirError} `WEIR_INVALID_OPTION` or `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * ```ts
 * import { etcdRules } from '@weir/etcd'
 *
 * follow(throttler, etcdRules('http://10.0.0.1:2379'), { algorithms: { tokenBucket } })
 * ```
 */
export function etcdRules(target: EtcdTarget, { name = 'default', ...options }: EtcdRulesOptions = {}): EtcdRules {
  const { namespace, timeout } = checkOptions(options, 'etcdRules')
  if (typeof name !== 'string' || !/^[\w.-]{1,100}$/.test(name))
    throw invalidOption('name', name, '1 to 100 letters, digits or any of _ . -')
  return new RulesKey(checkTarget(target), `${namespace}/rules/${name}`, timeout)
}

class RulesKey implements EtcdRules {
  readonly name: string
  readonly interval: number = INTERVAL
  readonly #key: string
  readonly #link: Link
  readonly #listeners = new Set<() => void>()
  #watch: Watch | undefined
  #closed = false

  constructor(target: CheckedTarget, key: string, timeout: number) {
    this.name = `etcd at ${target.endpoints.map(({ host }) => host).join(',')}, ${key}`
    this.#key = key
    this.#link = new Link(target, systemClock, timeout)
  }

  read(): Promise<string | undefined> {
    return this.#asked(async () => (await this.#document()).held?.value)
  }

  watch(changed: () => void): () => void {
    // A function of its own, so that each registration ends separately, even if the same function is passed twice.
    const listener = (): void => changed()
    this.#listeners.add(listener)
    if (this.#watch === undefined && !this.#closed) {
      this.#watch = new Watch(
        this.#link,
        () => watchOfOne(this.#key),
        ({ canceled, reason }) => this.#hear(canceled, reason),
      )
      this.#watch.start()
    }
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#watch?.close()
      this.#watch = undefined
    }
  }

  replace(before: string | undefined, text: string): Promise<boolean> {
    return this.#asked(async () => {
      const { held, revision, kept } = await this.#document(MOST_KEPT)
      if (held?.value !== before) return false
      const puts = [put(this.#key, text), put(this.#placeOf(revision + 1), await packed(text))]
      // A document that another program wrote is added to the history too.
      if (held !== undefined && kept[0]?.revision !== held.revision) puts.push(put(this.#placeOf(held.revision), await packed(held.value)))
      const oldest = kept[MOST_KEPT - puts.length + 1]
      if (oldest !== undefined) puts.push(removeFrom(this.#history, `${oldest.name}\0`))
      const done = await this.#link.transact(puts, [unchanged(this.#key, held?.revision ?? 0)], [get(this.#key)])
      // The link may have sent it twice because the first reply was lost.
      return done.succeeded || partOf(done, 0).held[0]?.value === text
    })
  }

  history(most: number): Promise<readonly string[]> {
    return this.#asked(async () => {
      const { held, kept } = await this.#document(Math.max(1, Math.min(MOST_KEPT, Math.floor(most))))
      const texts = held !== undefined && kept[0]?.revision !== held.revision ? [held.value] : []
      for (let at = 0; at < kept.length; at += PAGE) {
        const page = kept.slice(at, at + PAGE)
        const { parts } = await this.#link.transact(page.map(({ name }) => get(name)))
        for (const { held: one } of parts) {
          const text = one[0] === undefined ? undefined : await unpacked(one[0].value)
          if (text !== undefined) texts.push(text)
        }
      }
      return texts.slice(0, Math.max(0, Math.floor(most)))
    })
  }

  close(): void {
    this.#closed = true
    this.#listeners.clear()
    this.#watch?.close()
    this.#link.close()
  }

  /** The name of a document in the history. Its number is above all earlier revisions, and at most the revision that wrote it. */
  #placeOf(revision: number): string {
    return `${this.#history}${String(revision).padStart(16, '0')}`
  }

  get #history(): string {
    return `${this.#key}/history/`
  }

  /**
   * Returns the document, the revision of all of etcd, and the last names of the history, the newest first, without values.
   *
   * @param most the most names of the history
   */
  async #document(most = 0): Promise<{ readonly held: Held | undefined; readonly revision: number; readonly kept: readonly Held[] }> {
    const reply = await this.#link.transact([get(this.#key), ...(most > 0 ? [last(this.#history, most)] : [])])
    return { held: partOf(reply, 0).held[0], revision: reply.revision, kept: partOf(reply, 1).held }
  }

  async #asked<T>(run: () => Promise<T>): Promise<T> {
    if (this.#closed) throw closedPart('The source of rules')
    try {
      return await run()
    } catch (error) {
      throw asWeirError(error)
    }
  }

  /** Reports a change, also when the watch has started, because the document may have changed before. */
  #hear(canceled: boolean, reason: string): void {
    if (canceled) throw new Error(reason)
    for (const changed of this.#listeners) changed()
  }
}

const compressed = promisify(gzip)
const uncompressed = promisify(gunzip)

/** The format that `base64 -d | gunzip` reads. */
async function packed(text: string): Promise<string> {
  return (await compressed(text)).toString('base64')
}

/** Returns undefined if the value is not a document, for example because another program wrote it. */
async function unpacked(value: string): Promise<string | undefined> {
  try {
    return (await uncompressed(Buffer.from(value, 'base64'), { maxOutputLength: LONGEST })).toString('utf8')
  } catch {
    return undefined
  }
}
