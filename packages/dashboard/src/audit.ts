import type { AuditEntry } from './protocol.ts'

const KEPT = 100
/** UTF-16 units. Keys of policies are never longer. */
const LONGEST_KEY = 300

/** The newest actions of people in this process. */
export class Audit {
  #entries: AuditEntry[] = []

  add(entry: AuditEntry): void {
    this.#entries = [{ ...entry, key: entry.key.slice(0, LONGEST_KEY) }, ...this.#entries].slice(0, KEPT)
  }

  /** Newest first. */
  get entries(): readonly AuditEntry[] {
    return this.#entries
  }
}
