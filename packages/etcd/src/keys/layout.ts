import { createHash } from 'node:crypto'

/** Names of this form are parts of keys without a change. */
const PLAIN = /^[\w.:@-]{1,150}$/

/** Returns a name as a part of a key of etcd: the name itself if it is short and plain, else its hash. No plain name equals a hash. */
export function nameOf(text: string): string {
  // JSON, because lone surrogates have no bytes of their own.
  return PLAIN.test(text) ? text : `%${createHash('sha256').update(JSON.stringify(text)).digest('base64url')}`
}

/**
 * The names of everything in etcd. `p` is a policy, `k` a caller's key, `n` a process.
 *
 *     c/p/k/n    the counts of a process for a key
 *     c/p/k/=    the base of a bucket: the level to which processes' counts are added
 *     b/p/k      a key's block and its last reset
 *     v          is written with each change of a block
 *     h/p/k/o    a key near its limit, in the cell `o` of a fixed window
 *     d/p/k      the state of a key that the store decides
 *     q/p/k/o    quota taken ahead in the interval `o`
 *     f/p/k/o    the last announcement about that quota
 *     n/n        a live process
 *     s/n        the status of a process, while any process watches
 *     w          the time until which processes report their statuses
 *     r/hash     the rules of processes
 *     a/n        the last announcements of a process
 *     m/t/n      a manual action at the time `t`
 */
export class Layout {
  /** Begins with the version of the layout. */
  readonly #root: string
  readonly #names = new WeakMap<object, string>()

  constructor(namespace: string) {
    this.#root = `${namespace}/1/`
  }

  /** @param policy the same object for every name of a policy */
  #of(policy: { readonly id: string }): string {
    let name = this.#names.get(policy)
    if (name === undefined) this.#names.set(policy, (name = nameOf(policy.id)))
    return name
  }

  counts(policy: { readonly id: string }, key: string): string {
    return `${this.#root}c/${this.#of(policy)}/${nameOf(key)}/`
  }

  block(policy: { readonly id: string }, key: string): string {
    return `${this.#root}b/${this.#of(policy)}/${nameOf(key)}`
  }

  hot(policy: { readonly id: string }, key: string, cell: number): string {
    return `${this.#root}h/${this.#of(policy)}/${nameOf(key)}/${cell}`
  }

  decided(policy: { readonly id: string }, key: string): string {
    return `${this.#root}d/${this.#of(policy)}/${nameOf(key)}`
  }

  quota(policy: { readonly id: string }, key: string, ordinal: number): string {
    return `${this.#root}q/${this.#of(policy)}/${nameOf(key)}/${ordinal}`
  }

  news(policy: { readonly id: string }, key: string, ordinal: number): string {
    return `${this.#root}f/${this.#of(policy)}/${nameOf(key)}/${ordinal}`
  }

  node(id: string): string {
    return `${this.nodes}${nameOf(id)}`
  }

  status(id: string): string {
    return `${this.statuses}${nameOf(id)}`
  }

  rules(text: string): string {
    return `${this.allRules}${createHash('sha256').update(JSON.stringify(text)).digest('base64url')}`
  }

  announced(id: string): string {
    return `${this.announcements}${nameOf(id)}`
  }

  /** @param unique distinguishes the actions of one millisecond */
  action(time: number, unique: string): string {
    return `${this.actions}${String(Math.max(0, Math.round(time))).padStart(16, '0')}/${nameOf(unique)}`
  }

  get actions(): string {
    return `${this.#root}m/`
  }

  get blocks(): string {
    return `${this.#root}b/`
  }

  get blocksChanged(): string {
    return `${this.#root}v`
  }

  get allHot(): string {
    return `${this.#root}h/`
  }

  get allNews(): string {
    return `${this.#root}f/`
  }

  get nodes(): string {
    return `${this.#root}n/`
  }

  get statuses(): string {
    return `${this.#root}s/`
  }

  get watched(): string {
    return `${this.#root}w`
  }

  get allRules(): string {
    return `${this.#root}r/`
  }

  get announcements(): string {
    return `${this.#root}a/`
  }
}

/** The name of a bucket's level beside the names of processes. No process has this name. */
export const BASE = '='
