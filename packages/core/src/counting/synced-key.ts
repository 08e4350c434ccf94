import type { Ordinal } from '../time/intervals.ts'

/** How far the counts of a key are synced. Times are of the monotonic clock. */
export class SyncedKey {
  /** When the last sync was sent, and when one last returned. */
  sentAt: number = Number.NEGATIVE_INFINITY
  syncedAt: number = Number.NEGATIVE_INFINITY
  /** Own net units in the running sync. Absent if each cell counts its own. */
  declare readonly flight?: number
  /** Announced as near its limit before this process took part: its first request is synced immediately. */
  hello = false
  /** An announcement came during a sync: its total may be newer than the reply's. */
  announcedInFlight = false
  /** The part of the store with this key is down, though others answer: `failMode` decides until it is back. */
  away = false
  /** The last cell in which `away` was true: exceeding the limit by units of it starts no cooldown. */
  awayIn = -1

  /** A sync is sent. */
  sent(now: number): void {
    this.sentAt = now
    this.announcedInFlight = false
    this.hello = false
  }

  /** The sync has succeeded or failed. */
  landed?(): void

  /** The key's part of the store has gone down, or is back. */
  setAway(away: boolean, running: Ordinal, _now: number): void {
    this.away = away
    this.awayIn = running
  }
}

/** The state of the keys that are synced, by slot. */
export interface SyncedKeys {
  find(slot: number): SyncedKey | undefined
  /** Creates it if there is none. */
  at(slot: number): SyncedKey
  /** The key of a slot is removed. */
  forgotten(slot: number): void
}
