/**
 * Detects that a shard has lost data. Each call of a process has a number, which the shard remembers in the same atomic step. If a call
 * finds a smaller number than the last acknowledged one, the server has lost that call: it restarted empty, was flushed, or is a replica
 * that lagged behind when it took over.
 */
export class Sequence {
  #last = 0
  #acknowledged = 0

  /** Returns the number of the next call. */
  next(): number {
    return ++this.#last
  }

  /**
   * Records a reply.
   *
   * @param before - the number that the shard remembered before the call, 0 for none
   * @returns whether data was lost
   */
  answered(sequence: number, before: number): boolean {
    // The reply of an older call proves nothing if it arrives late.
    const lost = this.#acknowledged < sequence && before < this.#acknowledged
    if (sequence > this.#acknowledged) this.#acknowledged = sequence
    return lost
  }
}
