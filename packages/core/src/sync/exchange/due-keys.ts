import type { Batch } from '../../counting/batch.ts'
import type { CountsSynced } from '../../counting/site.ts'

/** Timers fire on whole milliseconds; what is due within this time travels along. */
const EPSILON = 0.5

/** Keys and when they are due, as parallel arrays: a million may ask at once. What is taken from the front moves nothing. */
class Queue {
  meters: CountsSynced[] = []
  slots: number[] = []
  times: number[] = []
  /** Place of the first one that is left. */
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

  /** Lets go of what was taken from the front, once that is most of it. */
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

/** Keys that asked for an exchange, in the order in which they did. */
export class DueKeys {
  #queue = new Queue()
  /** Those that were not due when their turn came. They are looked at again when the first one of them is. */
  #later = new Queue()

  get waiting(): boolean {
    return !this.#queue.empty || !this.#later.empty
  }

  /** When the first one is due, on the monotonic clock, or earlier; infinite where none is. */
  get next(): number {
    return Math.min(this.#queue.earliest, this.#later.earliest)
  }

  add(meter: CountsSynced, slot: number, at: number): void {
    this.#queue.add(meter, slot, at)
  }

  /** Moves what is due into a batch, as long as there is room in it. */
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

  /** None of them gets an exchange, as the store is away. */
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
