import { hostname } from 'node:os'
import process from 'node:process'
import { show, WeirError } from '../report/errors.ts'
import { object, optional, text, whole } from '../report/readers.ts'
import { reasonOf } from '../report/show.ts'
import { type AuditLog, answered, LONGEST_AUDITED, MOST_AUDITED } from '../store/audit.ts'
import { loadCode } from '../time/load-code.ts'
import type { Coordinated } from './coordinator.ts'

/** A manual action: a block, an unblock or a reset of a key. */
export interface AuditedAction {
  /** The action, e.g. `'block'`, `'unblock'` or `'reset'`. */
  readonly action: string
  readonly key: string
  /** Name of the policy. Undefined for all policies. */
  readonly policy?: string | undefined
  /**
   * The user, e.g. `'alice@laptop'` or a session's name.
   *
   * @default the host name and the process id
   */
  readonly by?: string | undefined
  /** The reason that the user gave. */
  readonly reason?: string | undefined
}

/** An entry of the audit log. */
export interface AuditEntry {
  /** Milliseconds since the Unix epoch, by the clock of the process that acted. */
  readonly time: number
  readonly by: string
  readonly action: string
  /** Name of the policy. Undefined for all policies. */
  readonly policy?: string
  readonly key: string
  /** Empty if the user gave none. */
  readonly reason: string
}

/** The most entries that a process without a store keeps. */
const MOST_OWN = 100
/** The most UTF-16 units of each part of an entry, of which the longest is a key. */
const LONGEST_PART = 256

/** The entries of processes without an audit log in their store, newest first. */
const own = new WeakMap<object, string[]>()

/** Adds an entry. Never rejects: a failure causes one warning, because the action itself has taken effect. */
export async function record(action: AuditedAction, host: Coordinated): Promise<void> {
  const { clock, coordinator, emitter } = host
  const entry = entryOf(action, clock.now())
  try {
    const log = await answered(clock, openLog(coordinator))
    if (log !== undefined) await answered(clock, log.add(entry))
    else own.set(host, [entry, ...(own.get(host) ?? [])].slice(0, MOST_OWN))
  } catch (cause) {
    const what = `The ${action.action.slice(0, 20)} of ${show(action.key)} took effect, but the audit log doesn't contain it`
    host.warn(new WeirError('WEIR_STORE_UNAVAILABLE', `${what} (${reasonOf(cause)}). Check the store.`, { cause }), 'audit')
    emitter.deliver()
  }
}

/** Returns the newest entries, the newest one first. @throws (rejects) if the store does not answer */
export async function recorded(most: number, host: Coordinated): Promise<readonly AuditEntry[]> {
  const { clock, coordinator } = host
  const log = await answered(clock, openLog(coordinator))
  const texts: unknown = log === undefined ? (own.get(host) ?? []) : await answered(clock, log.list(Math.min(most, MOST_AUDITED)))
  return Array.isArray(texts) ? texts.slice(0, most).flatMap((one) => parseAuditEntry(one) ?? []) : []
}

/** Async, because the store of an application may throw. */
async function openLog(coordinator: Coordinated['coordinator']): Promise<AuditLog | undefined> {
  return await loadCode(async () => coordinator?.audit())
}

/** An entry as text. Long parts are cut, because a store keeps short entries only. */
function entryOf({ action, key, policy, by, reason }: AuditedAction, time: number): string {
  const parts = { by: by ?? `${hostname()}:${process.pid}`, action, policy, key, reason: reason ?? '' }
  // Escaped characters take up to six times their length.
  for (let most = LONGEST_PART; ; most /= 2) {
    const cut = Object.entries(parts).map(([name, part]) => [
      name,
      part !== undefined && part.length > most ? `${part.slice(0, most - 1)}…` : part,
    ])
    const entry = JSON.stringify({ time, ...Object.fromEntries(cut) })
    if (entry.length <= LONGEST_AUDITED) return entry
  }
}

/**
 * Reads an entry of a store's log, for programs without a throttler. Returns undefined for a text of another form, because a store's content
 * is not trusted.
 */
export function parseAuditEntry(entry: unknown): AuditEntry | undefined {
  if (typeof entry !== 'string' || entry.length > LONGEST_AUDITED) return undefined
  try {
    return read(JSON.parse(entry))
  } catch {
    return undefined
  }
}

const part = text(LONGEST_PART)
/** The latest time of a `Date`. */
const LATEST = 8.64e15
const read = object({ time: whole(0, LATEST), by: part, action: part, policy: optional(part), key: part, reason: part })
