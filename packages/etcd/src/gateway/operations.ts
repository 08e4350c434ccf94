/*
 * What is asked of etcd, in the JSON of its gateway: bytes in base64, 64-bit numbers as texts.
 */

export interface Operation {
  readonly [kind: string]: unknown
}

export interface Compare {
  readonly key: string
  readonly target: 'MOD'
  readonly result: 'EQUAL' | 'GREATER'
  readonly mod_revision: string
}

/** A transaction has at most so many operations, as etcd is set up by default (`--max-txn-ops`). */
export const MOST_OPERATIONS = 128
/** Characters of a transaction at most: etcd takes 1.5 MB by default (`--max-request-bytes`), and base64 makes a third more of it here. */
export const LONGEST_TRANSACTION = 700_000

function bytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64')
}

/** @param lease the id of the lease that it lives as long as; without one it stays */
export function put(name: string, value: string, lease?: string): Operation {
  return { request_put: { key: bytes(name), value: bytes(value), ...(lease !== undefined && { lease }) } }
}

export function get(name: string): Operation {
  return { request_range: { key: bytes(name) } }
}

export function remove(name: string): Operation {
  return { request_delete_range: { key: bytes(name) } }
}

/** Removes all names from one on, up to another one, which stays. */
export function removeFrom(name: string, end: string): Operation {
  return { request_delete_range: { key: bytes(name), range_end: bytes(end) } }
}

/** The last names with a prefix, the last one first; with their values, or without. */
export function last(prefix: string, limit: number, values: boolean): Operation {
  const keys = { key: bytes(prefix), range_end: bytes(endOfPrefix(prefix)) }
  return {
    request_range: { ...keys, limit: String(limit), sort_order: 'DESCEND', sort_target: 'KEY', ...(!values && { keys_only: true }) },
  }
}

export interface RangeOptions {
  /** Only what was written after this revision. */
  readonly after?: number
  /** As things were at this revision; else as they are. */
  readonly at?: number
  readonly limit?: number
  /** The name to begin with. */
  readonly from?: string
}

/** @param prefix ends with `/` */
export function range(prefix: string, { after, at, limit, from }: RangeOptions = {}): Operation {
  return {
    request_range: {
      key: bytes(from ?? prefix),
      range_end: bytes(endOfPrefix(prefix)),
      ...(after !== undefined && { min_mod_revision: String(after + 1) }),
      ...(at !== undefined && { revision: String(at) }),
      ...(limit !== undefined && { limit: String(limit) }),
    },
  }
}

/** The first name after all that begin with the prefix: `0` follows `/`. */
export function endOfPrefix(prefix: string): string {
  return `${prefix.slice(0, -1)}0`
}

/** Whether a key is as it was written at a revision; 0: whether there is none. */
export function unchanged(name: string, revision: number): Compare {
  return { key: bytes(name), target: 'MOD', result: 'EQUAL', mod_revision: String(revision) }
}

export function changedAfter(name: string, revision: number): Compare {
  return { key: bytes(name), target: 'MOD', result: 'GREATER', mod_revision: String(revision) }
}

/** What a watch of one name is begun with. */
export function watchOfOne(name: string): string {
  return JSON.stringify({ create_request: { key: bytes(name) } })
}

/** What a watch of all names with a prefix is begun with. */
export function watchOf(prefix: string, from: number | undefined): string {
  const start = from === undefined ? {} : { start_revision: String(from) }
  return JSON.stringify({
    create_request: { key: bytes(prefix), range_end: bytes(endOfPrefix(prefix)), filters: ['NODELETE'], progress_notify: true, ...start },
  })
}
