import type { Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import type { BlockedKey } from '@weir/core/inspect'
import type { KeyEvent, Sample } from './protocol.ts'

/** Most entries of each kind: block events of all keys, keys with samples, and samples per key. The samples cover ten minutes. */
const EVENTS = 1_000
const FOLLOWED = 300
const SAMPLES = 120
/** Milliseconds between two samples of a key. */
const APART = 5_000
const NOTES = 1_000
/** Milliseconds by which a block may be longer than a cooldown because of round trips. */
const ROUNDING = 1_000
/** Longest note, in UTF-16 units. */
export const LONGEST_NOTE = 500

/** The history of single keys for the page of a key: its blocks, its use while a dashboard was open, and a note. */
export class KeyMemory {
  readonly #events: { readonly key: string; readonly event: KeyEvent }[] = []
  /** By policy and key, in the order of the last sample. */
  readonly #samples = new Map<string, Sample[]>()
  readonly #notes = new Map<string, string>()
  /** Milliseconds of each key's current block, by policy and key. */
  readonly #lengths = new Map<string, number>()
  readonly #throttler: Throttler<string, never>
  readonly #offs: (() => void)[]

  constructor(throttler: Throttler<string, never>) {
    this.#throttler = throttler
    const add = (key: string, event: KeyEvent): void => {
      this.#events.push({ key, event })
      if (this.#events.length > EVENTS) this.#events.shift()
    }
    this.#offs = [
      throttler.on('blocked', ({ policy, key, cause, durationMs: ms }) => {
        add(key, { time: Date.now(), kind: 'blocked', policy, cause, durationMs: ms })
        this.#lengths.set(idOf(policy, key), ms)
        if (this.#lengths.size > EVENTS) this.#lengths.delete(this.#lengths.keys().next().value as string)
      }),
      throttler.on('unblocked', ({ policy, key, cause }) => {
        add(key, { time: Date.now(), kind: 'unblocked', policy, cause, durationMs: 0 })
        this.#lengths.delete(idOf(policy, key))
      }),
    ]
  }

  /** Adds the used units of a key at a time in milliseconds since the Unix epoch. */
  follow(policy: string, key: string, used: number, time: number): void {
    const id = idOf(policy, key)
    const samples = this.#samples.get(id) ?? []
    const last = samples.at(-1)
    if (last === undefined || time - last[0] >= APART) {
      samples.push([time, used])
      if (samples.length > SAMPLES) samples.shift()
    }
    this.#samples.delete(id)
    this.#samples.set(id, samples)
    if (this.#samples.size > FOLLOWED) this.#samples.delete(this.#samples.keys().next().value as string)
  }

  samples(policy: string, key: string): readonly Sample[] {
    return this.#samples.get(idOf(policy, key)) ?? []
  }

  /** Block events of a key, newest first. */
  events(key: string): readonly KeyEvent[] {
    return this.#events.flatMap((one) => (one.key === key ? [one.event] : [])).reverse()
  }

  /** Whether a block lasts until the interval ends, as far as this process has seen its begin. */
  lastsUntilIntervalEnd({ policy, key, cause, remainingMs }: BlockedKey): boolean {
    if (cause !== 'cooldown') return false
    return isLongerThanCooldown(this.#throttler, policy, Math.max(remainingMs, this.#lengths.get(idOf(policy, key)) ?? 0))
  }

  note(key: string): string {
    return this.#notes.get(key) ?? ''
  }

  /** An empty note removes the note. Beyond 1,000 notes the oldest is removed. */
  setNote(key: string, note: string): void {
    this.#notes.delete(key)
    if (note === '') return
    this.#notes.set(key, note.slice(0, LONGEST_NOTE))
    if (this.#notes.size > NOTES) this.#notes.delete(this.#notes.keys().next().value as string)
  }

  close(): void {
    for (const off of this.#offs) off()
  }
}

/**
 * Whether a block of this length is longer than the policy's cooldown, because it lasts until the interval ends. A growing cooldown has no
 * fixed length.
 */
export function isLongerThanCooldown(throttler: Throttler<string, never>, name: string, durationMs: number): boolean {
  const policy = adapterOf(throttler).policies.find((one) => one.name === name)
  return policy !== undefined && policy.cooldownGrowth === undefined && durationMs > policy.cooldown + ROUNDING
}

function idOf(policy: string, key: string): string {
  return JSON.stringify([policy, key])
}
