import { copied } from './key-text.ts'

/** Number of float64 fields of a record whose counts are synced. */
export const STRIDE = 5
/** Offsets of a record's fields from `slot * STRIDE`. */
export const KNOWN = 0
export const GATE = 1
export const TAG = 2
export const OTHERS = 3
export const SENT = 4

/** Bits of `flags`. */
export const IN_FLIGHT = 1
export const ACTIVE = 2
export const BLOCKED = 4
export const DUE = 8
/** The counts of the others were announced, not returned by a sync. */
export const TOLD = 16
/** The two highest bits: the source of the counts by which a key is full, a `SourceIndex`. */
export const FULL_BY = 6
export const OTHER_FLAGS = 63

const FIRST_CAPACITY = 64

/**
 * The records of one policy's keys. Each key has a slot, and its numbers lie together in one typed array. So a million keys are a Map, an
 * array of their strings and two buffers, and a decision touches one cache line:
 *
 *     fields[slot * 5 + …]   KNOWN   confirmed counts of the running interval, own units included
 *                            GATE    below it a request is counted at once (see GatedMeter)
 *                            TAG     interval and state for which KNOWN and GATE are valid
 *                            OTHERS  units of the other processes. KNOWN - OTHERS is this process's own net count
 *                            SENT    own units taken, as acknowledged by the store
 *     flags[slot]            `IN_FLIGHT | ACTIVE | BLOCKED | DUE | TOLD | source << FULL_BY`
 *     rejected[slot]         rejections that the list of rejected keys lacks
 *     keys[slot]             the key, or undefined while the slot is free
 *
 * A free slot's KNOWN field contains the next free slot. Meters read the first three fields by number on the request path: an imported
 * constant is loaded and checked at each use, and the compiler can inline less.
 */
export class KeyTable {
  /** The number of fields of a record. */
  stride: number
  fields: Float64Array
  flags: Uint8Array
  /** Rejections of each slot's key since they were last read (`RejectedKeys`). */
  rejected: Uint32Array = new Uint32Array(FIRST_CAPACITY)
  /** As long as the table's capacity, so that it grows with the buffers and V8 reserves no more. */
  keys: (string | undefined)[] = emptyKeys(FIRST_CAPACITY)
  readonly #slots = new Map<string, number>()
  readonly #maxKeys: number
  #free = -1
  #used = 0

  constructor(maxKeys: number, stride: number = STRIDE) {
    this.#maxKeys = maxKeys
    this.stride = stride
    this.fields = new Float64Array(FIRST_CAPACITY * stride)
    this.flags = new Uint8Array(FIRST_CAPACITY)
  }

  /** The number of keys. */
  get size(): number {
    return this.#slots.size
  }

  /** Slots below this number have been used. */
  get end(): number {
    return this.#used
  }

  get full(): boolean {
    return this.#slots.size >= this.#maxKeys
  }

  /** The slot of a key, or -1. */
  find(key: string): number {
    const slot = this.#slots.get(key)
    return slot === undefined ? -1 : slot
  }

  /** A slot for a new key, with all fields 0, or -1 if the table is full. The key must not be in the table. */
  add(key: string): number {
    return this.full ? -1 : this.addAnyway(key)
  }

  /** As `add`, even if the table is full. Keeps a copy of the key, because the key may be a part of a long string. */
  addAnyway(key: string): number {
    const own = copied(key)
    const slot = this.reserve(own)
    this.#slots.set(own, slot)
    return slot
  }

  /** A slot that `find` never returns. */
  reserve(label: string): number {
    let slot = this.#free
    if (slot >= 0) {
      this.#free = this.fields[slot * this.stride] as number
      this.fields.fill(0, slot * this.stride, (slot + 1) * this.stride)
    } else {
      slot = this.#used++
      if (slot >= this.flags.length) this.#grow()
    }
    this.flags[slot] = 0
    this.keys[slot] = label
    return slot
  }

  countRejected(slot: number): void {
    this.rejected[slot] = (this.rejected[slot] as number) + 1
  }

  /** Frees a slot and forgets its key. */
  remove(slot: number): void {
    const key = this.keys[slot]
    if (key === undefined) return
    // A reserved slot's label may be equal to a user's key, which has another slot.
    if (this.#slots.get(key) === slot) this.#slots.delete(key)
    this.keys[slot] = undefined
    this.flags[slot] = 0
    const base = slot * this.stride
    this.fields.fill(-1, base, base + this.stride)
    this.fields[base] = this.#free
    this.#free = slot
    if (this.#slots.size === 0) this.#reset()
  }

  /** Gives records another number of fields, all 0. Keys keep their slots. */
  restride(stride: number = STRIDE): void {
    const fields = new Float64Array(this.flags.length * stride)
    for (let slot = this.#free; slot >= 0; slot = this.fields[slot * this.stride] as number) {
      fields[slot * stride] = this.fields[slot * this.stride] as number
    }
    this.fields = fields
    this.stride = stride
  }

  /** Frees all memory when the last key is removed. */
  #reset(): void {
    if (this.flags.length === FIRST_CAPACITY || this.keys.some((key) => key !== undefined)) return
    this.keys = emptyKeys(FIRST_CAPACITY)
    this.#free = -1
    this.#used = 0
    this.fields = new Float64Array(FIRST_CAPACITY * this.stride)
    this.flags = new Uint8Array(FIRST_CAPACITY)
    this.rejected = new Uint32Array(FIRST_CAPACITY)
  }

  #grow(): void {
    const { length } = this.flags
    // Doubles the capacity, up to the most keys. Beyond that only the shared counter and manual blocks need slots.
    const capacity = length < this.#maxKeys ? Math.min(2 * length, this.#maxKeys) : length + FEW
    const fields = new Float64Array(capacity * this.stride)
    fields.set(this.fields)
    this.fields = fields
    const flags = new Uint8Array(capacity)
    flags.set(this.flags)
    this.flags = flags
    const rejected = new Uint32Array(capacity)
    rejected.set(this.rejected)
    this.rejected = rejected
    this.keys.length = capacity
  }
}

/** Slots by which a full table grows. */
const FEW = 64

function emptyKeys(capacity: number): (string | undefined)[] {
  const keys: (string | undefined)[] = []
  keys.length = capacity
  return keys
}

/** Index of a slot's first field. */
export function baseOf(slot: number): number {
  return slot * STRIDE
}
