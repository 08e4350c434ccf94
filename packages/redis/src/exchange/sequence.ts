/**
 * Notices when a bucket has lost data. Each call of a node has a number, which the bucket remembers in the same atomic
 * step. A call that finds a smaller number than one that was acknowledged before it was sent to a server that has not
 * what the other one had: restarted empty, flushed, or a replica that lagged behind when it took over.
 */
export class Sequence {
  #last = 0
  #acknowledged = 0

  /** The number of the next call. */
  next(): number {
    return ++this.#last
  }

  /**
   * A call was answered.
   *
   * @param before - the number that the bucket remembered before the call; 0 for none
   * @returns whether data was lost
   */
  answered(sequence: number, before: number): boolean {
    // Out of order, the older answer proves nothing.
    const lost = this.#acknowledged < sequence && before < this.#acknowledged
    if (sequence > this.#acknowledged) this.#acknowledged = sequence
    return lost
  }
}
