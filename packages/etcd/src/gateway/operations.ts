/*
 * Operations of etcd in the JSON of its gateway: bytes in base64, 64-bit numbers as texts.
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

/** The most operations of a transaction. etcd's default is the same (`--max-txn-ops`). */
export const MOST_OPERATIONS = 128
/** The most characters of a transaction. etcd accepts 1.5 MB by default (`--max-request-bytes`), and base64 adds a third here. */
export const LONGEST_TRANSACTION = 700_000

function bytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64')
}

/** @param lease the id of the lease with which the key ends. Without a lease it stays */
export function put(name: string, value: string, lease?: string): Operation {
  return { request_put: { key: bytes(name), value: bytes(value), ...(lease !== undefined && { lease }) } }
}

export function get(name: string): Operation {
  return { request_range: { key: bytes(name) } }
}

export function remove(name: string): Operation {
  return { request_delete_range: { key: bytes(name) } }
}

/** Removes all names from one on, up to `end`, which stays. */
export function removeFrom(name: string, end: string): Operation {
  return { request_delete_range: { key: bytes(name), range_end: bytes(end) } }
}

/** The last names with a prefix, the last one first, without their values. */
export function last(prefix: string, limit: number): Operation {
  return ordered(prefix, limit, { sort_target: 'KEY', keys_only: true })
}

/** The keys with a prefix that were written last, the newest one first. */
export function newest(prefix: string, limit: number): Operation {
  return ordered(prefix, limit, { sort_target: 'MOD' })
}

function ordered(prefix: string, limit: number, how: object): Operation {
  const keys = { key: bytes(prefix), range_end: bytes(endOfPrefix(prefix)) }
  return { request_range: { ...keys, limit: String(limit), sort_order: 'DESCEND', ...how } }
}

/** A page of keys, in the order of their bytes. */
export interface RangeOperation extends Operation {
  readonly request_range: object
}

/**
 * The first page of all keys with a prefix. `pagesOf` reads the others.
 *
 * @param prefix ends with `/`
 * @param limit keys in the page at most
 * @param after only keys that were written after this revision
 */
export function range(prefix: string, limit: number, after?: number): RangeOperation {
  return {
    request_range: {
      key: bytes(prefix),
      range_end: bytes(endOfPrefix(prefix)),
      limit: String(limit),
      ...(after !== undefined && { min_mod_revision: String(after + 1) }),
    },
  }
}

/** Returns a page at a revision. @param key the first key of the page, in base64, undefined for the first page */
export function pageFrom({ request_range }: RangeOperation, key: string | undefined, limit: number, revision: number): RangeOperation {
  return { request_range: { ...request_range, ...(key !== undefined && { key }), limit: String(limit), revision: String(revision) } }
}

/** The first name after all that begin with the prefix: `0` follows `/`. */
export function endOfPrefix(prefix: string): string {
  return `${prefix.slice(0, -1)}0`
}

/** True if a revision was the last to write the key. Revision 0 is true if the key is missing. */
export function unchanged(name: string, revision: number): Compare {
  return { key: bytes(name), target: 'MOD', result: 'EQUAL', mod_revision: String(revision) }
}

export function changedAfter(name: string, revision: number): Compare {
  return { key: bytes(name), target: 'MOD', result: 'GREATER', mod_revision: String(revision) }
}

/** The request that starts a watch of one name. */
export function watchOfOne(name: string): string {
  return JSON.stringify({ create_request: { key: bytes(name) } })
}

/** The request that starts a watch of all names with a prefix. */
export function watchOf(prefix: string, from: number | undefined): string {
  const start = from === undefined ? {} : { start_revision: String(from) }
  return JSON.stringify({
    create_request: {
      key: bytes(prefix),
      range_end: bytes(endOfPrefix(prefix)),
      filters: ['NODELETE'],
      progress_notify: true,
      // After an outage, etcd would otherwise put a thousand revisions into one line, of any length.
      fragment: true,
      ...start,
    },
  })
}
