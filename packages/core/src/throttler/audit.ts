import { hostname } from 'node:os'
import process from 'node:process'
import { show, WeirError } from '../report/errors.ts'
import { reasonOf } from '../report/show.ts'
import { type AuditLog, answered, LONGEST_AUDITED } from '../store/audit.ts'
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

/** The most entries that a process without a store keeps. */
const MOST_OWN = 100
/** The most UTF-16 units of each part of an entry, of which the longest is a key. */
export const LONGEST_PART = 256

/** The entries of processes without an audit log in their store, newest first. */
const own = new WeakMap<object, readonly string[]>()

/** Adds an entry. Never rejects: a failure causes one warning, because the action itself has taken effect. */
export async function record(action: AuditedAction, host: Coordinated): Promise<void> {
  const { clock, coordinator, emitter } = host
  const entry = entryOf(action, clock.now())
  try {
    const log = await answered(clock, openLog(coordinator))
    if (log !== undefined) await answered(clock, log.add(entry))
    else own.set(host, [entry, ...ownEntries(host)].slice(0, MOST_OWN))
  } catch (cause) {
    const what = `The ${action.action.slice(0, 20)} of ${show(action.key)} took effect, but the audit log doesn't contain it`
    host.warn(new WeirError('WEIR_STORE_UNAVAILABLE', `${what} (${reasonOf(cause)}). Check the store.`, { cause }), 'audit')
    emitter.deliver()
  }
}

/** The entries of a process without an audit log in its store, newest first. */
export function ownEntries(host: Coordinated): readonly string[] {
  return own.get(host) ?? []
}

/** Opens the store's log. Async, because the store of an application may throw. */
export async function openLog(coordinator: Coordinated['coordinator']): Promise<AuditLog | undefined> {
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
