import { WeirError } from '@weir/core'

/*
 * Every reply of etcd is checked by type and range before it is used. The gateway omits values that are 0, false or empty.
 */

/** A key with its value in etcd. */
export interface Held {
  readonly name: string
  readonly value: string
  /** The revision that wrote it last. */
  readonly revision: number
}

export interface TransactionReply {
  /** The revision of the whole store at the time of the reply. */
  readonly revision: number
  /** Whether all comparisons were true. */
  readonly succeeded: boolean
  /** One for each operation. */
  readonly parts: readonly PartReply[]
}

/** The reply to one operation: a page of a range. */
export interface PartReply {
  readonly held: readonly Held[]
  /** The first key of the next page, in base64. Undefined if this is the last page. */
  readonly next: string | undefined
}

const NOTHING: PartReply = { held: [], next: undefined }

/** @throws WeirError `WEIR_STORE_REPLY` */
export function readTransaction(body: unknown): TransactionReply {
  const { header, succeeded, responses } = objectOf(body)
  return { revision: readRevision(objectOf(header)['revision']), succeeded: succeeded === true, parts: listOf(responses).map(readPart) }
}

function readPart(value: unknown): PartReply {
  const { response_range } = objectOf(value)
  if (response_range === undefined) return NOTHING
  const { kvs, more } = objectOf(response_range)
  const list = listOf(kvs)
  return { held: list.map(readHeld), next: more === true && list.length > 0 ? keyAfter(objectOf(list.at(-1))['key']) : undefined }
}

/** Returns the smallest key after another one, in bytes. A key that is not UTF-8 has no name to continue from. */
function keyAfter(key: unknown): string {
  return Buffer.concat([Buffer.from(typeof key === 'string' ? key : '', 'base64'), Buffer.of(0)]).toString('base64')
}

/** The result of one operation of a transaction. */
export function partOf({ parts }: TransactionReply, place: number): PartReply {
  return parts[place] ?? NOTHING
}

export function readHeld(value: unknown): Held {
  const { key, value: content, mod_revision } = objectOf(value)
  return { name: readBytes(key), value: readBytes(content), revision: readRevision(mod_revision) }
}

/** @throws WeirError `WEIR_STORE_REPLY` */
export function readRevision(value: unknown): number {
  const revision = typeof value === 'string' && value !== '' ? Number(value) : value
  if (!Number.isSafeInteger(revision) || (revision as number) < 0) throw replyError('a revision that is none')
  return revision as number
}

/** Returns the id of a lease: a 64-bit number, which stays a text. @throws WeirError `WEIR_STORE_REPLY` */
export function readLeaseId(body: unknown): string {
  const { ID, error } = objectOf(body)
  if (typeof ID !== 'string' || !/^[1-9]\d{0,18}$/.test(ID)) throw replyError(typeof error === 'string' ? error : 'a lease without an id')
  return ID
}

/** @throws WeirError `WEIR_STORE_REPLY` */
export function readToken(body: unknown): string {
  const { token } = objectOf(body)
  // A header can't contain text that isn't printable.
  if (typeof token !== 'string' || !/^[\x21-\x7e]{1,16384}$/.test(token)) throw replyError('a token that is none')
  return token
}

export interface WatchReply {
  readonly revision: number
  readonly created: boolean
  readonly canceled: boolean
  /** The oldest revision that etcd still has, if older ones are missing from the watch. Otherwise 0. */
  readonly compacted: number
  readonly reason: string
  readonly held: readonly Held[]
}

/** @throws WeirError `WEIR_STORE_REPLY` */
export function readWatch(body: unknown): WatchReply {
  const { result, error } = objectOf(body)
  if (error !== undefined) throw replyError(`a watch that failed: ${textOf(objectOf(error)['message'])}`)
  const { header, events, created, canceled, compact_revision, cancel_reason } = objectOf(result)
  return {
    revision: readRevision(objectOf(header)['revision'] ?? '0'),
    created: created === true,
    canceled: canceled === true,
    compacted: readRevision(compact_revision ?? '0'),
    reason: textOf(cancel_reason),
    held: listOf(events).map((event) => readHeld(objectOf(event)['kv'])),
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function readBytes(value: unknown): string {
  if (value === undefined) return ''
  if (typeof value !== 'string') throw replyError('bytes that are none')
  return Buffer.from(value, 'base64').toString('utf8')
}

function objectOf(value: unknown): { readonly [name: string]: unknown } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw replyError('no object')
  return value as { readonly [name: string]: unknown }
}

function listOf(value: unknown): readonly unknown[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw replyError('no list')
  return value
}

export function replyError(what: string): WeirError {
  return new WeirError('WEIR_STORE_REPLY', `Invalid reply from etcd: ${what}. Is it etcd 3.4 or newer?`)
}
