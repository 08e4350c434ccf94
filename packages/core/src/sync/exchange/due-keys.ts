import type { Batch } from '../../counting/batch.ts'
import type { CountsSynced } from '../../counting/site.ts'

/** Timers fire on whole milliseconds, so keys that are due within this time join the batch. */
const EPSILON = 0.5

/**
 * Keys with the times when they are due, in parallel arrays, because a million may be due at once. Removal from the front moves no item.
 */
class Queue {
  meters: CountsSynced[] = []
  slots: number[] = []
  times: number[] = []
  /** The index of the first remaining item. */
  head = 0
  /** No key is due before this time. */
  earliest: number = Number.POSITIVE_INFINITY

  get empty(): boolean {
    return this.head === this.slots.length
  }

  add(meter: CountsSynced, slot: number, at: number): void {
    this.meters.push(meter)
    this.slots.push(slot)
    this.times.push(at)
    this.earliest = Math.min(this.earliest, at)
  }

  /** Frees removed items once they are most of the array. */
  tidy(): void {
    if (this.empty) this.clear()
    else if (2 * this.head > this.slots.length) {
      this.meters.splice(0, this.head)
      this.slots.splice(0, this.head)
      this.times.splice(0, this.head)
      this.head = 0
    }
  }

  clear(): void {
    this.meters = []
    this.slots = []
    this.times = []
    this.head = 0
    this.earliest = Number.POSITIVE_INFINITY
  }
}

/** Keys that need a sync, in the order in which they became due. */
export class DueKeys {
  #queue = new Queue()
  /** Keys that were not due yet when their turn came. They move back to the queue when the first of them is due. */
  #later = new Queue()

  get waiting(): boolean {
    return !this.#queue.empty || !this.#later.empty
  }

  /** When the first key is due, on the monotonic clock, or an earlier time. Infinite without keys. */
  get next(): number {
    return Math.min(this.#queue.earliest, this.#later.earliest)
  }

  add(meter: CountsSynced, slot: number, at: number): void {
    this.#queue.add(meter, slot, at)
  }

  /** Moves due keys into a batch until it is full. */
  collect(now: number, batch: Batch): void {
    if (!this.#later.empty && this.#later.earliest <= now + EPSILON) this.#lookAgain()
    const queue = this.#queue
    const { meters, slots, times } = queue
    for (const end = slots.length; queue.head < end && !batch.full; queue.head++) {
      const meter = meters[queue.head] as CountsSynced
      const slot = slots[queue.head] as number
      const at = times[queue.head] as number
      if (at <= now + EPSILON) meter.collect(slot, now, batch)
      else this.#later.add(meter, slot, at)
    }
    queue.tidy()
  }

  /** Removes all keys without a sync, because the store is down. */
  drop(): void {
    const queues = [this.#queue, this.#later]
    this.#queue = new Queue()
    this.#later = new Queue()
    for (const { meters, slots, head } of queues) {
      for (let i = head; i < slots.length; i++) (meters[i] as CountsSynced).undue(slots[i] as number)
    }
  }

  #lookAgain(): void {
    const { meters, slots, times } = this.#later
    if (this.#queue.empty) {
      const empty = this.#queue
      this.#queue = this.#later
      this.#later = empty
      return
    }
    for (let i = 0; i < slots.length; i++) this.#queue.add(meters[i] as CountsSynced, slots[i] as number, times[i] as number)
    this.#later.clear()
  }
}
