/** An event at a moment of virtual time. */
export interface QueuedEvent {
  /** Milliseconds of virtual time. */
  readonly at: number
  /** Order among events of the same moment: the first in the queue runs first. */
  readonly sequence: number
  readonly run: () => void
  /** Whether it may settle promises, so that their continuations must run before the next event. */
  readonly settles: boolean
  /** Place in the heap. -1 if it is no longer queued. */
  index: number
}

/**
 * Events in order of time, and of queueing among equal times. It is a binary heap in which every event stores its place, so that a
 * cancelled timer is removed immediately. (Throttlers move their timer all the time. If cancelled timers stayed, they would
 * outnumber live ones.)
 */
export class EventQueue {
  readonly #heap: QueuedEvent[] = []
  #sequence = 0

  get size(): number {
    return this.#heap.length
  }

  /** The time of the first event. `Infinity` if the queue is empty. */
  get nextAt(): number {
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY
  }

  add(at: number, run: () => void, settles: boolean): QueuedEvent {
    const event: QueuedEvent = { at, sequence: this.#sequence++, run, settles, index: this.#heap.length }
    this.#heap.push(event)
    this.#up(event)
    return event
  }

  /** Removes and returns the first event. */
  take(): QueuedEvent | undefined {
    const first = this.#heap[0]
    if (first !== undefined) this.remove(first)
    return first
  }

  /** Removes an event. Does nothing if it is no longer queued. */
  remove(event: QueuedEvent): void {
    const index = event.index
    if (index < 0) return
    event.index = -1
    const last = this.#heap.pop() as QueuedEvent
    if (last === event) return
    this.#heap[index] = last
    last.index = index
    this.#up(last)
    this.#down(last)
  }

  #up(event: QueuedEvent): void {
    const heap = this.#heap
    let index = event.index
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = heap[parentIndex] as QueuedEvent
      if (!before(event, parent)) break
      heap[index] = parent
      parent.index = index
      index = parentIndex
    }
    heap[index] = event
    event.index = index
  }

  #down(event: QueuedEvent): void {
    const heap = this.#heap
    let index = event.index
    for (;;) {
      let childIndex = 2 * index + 1
      let child = heap[childIndex]
      if (child === undefined) break
      const other = heap[childIndex + 1]
      if (other !== undefined && before(other, child)) {
        child = other
        childIndex++
      }
      if (!before(child, event)) break
      heap[index] = child
      child.index = index
      index = childIndex
    }
    heap[index] = event
    event.index = index
  }
}

function before(one: QueuedEvent, other: QueuedEvent): boolean {
  return one.at < other.at || (one.at === other.at && one.sequence < other.sequence)
}
