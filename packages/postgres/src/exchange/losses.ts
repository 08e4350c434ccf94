/**
 * Notices when the store has lost data. Each call of a node has a number, which the database remembers in the same transaction. A
 * call that finds a smaller number than one that was acknowledged before it was sent met a database that has not what the other one
 * had: emptied by a crash, or a replica that lagged behind when it took over. That tables were emptied by hand shows in their files.
 */
export class Losses {
  #last = 0
  #acknowledged = 0
  #tables: string | undefined
  #count = 0

  /** The number of the next call. */
  next(): number {
    return ++this.#last
  }

  /** Changes with each loss. */
  get generation(): string {
    return String(this.#count)
  }

  /**
   * A call was answered.
   *
   * @param before the number that the database remembered before the call; 0 for none
   * @param tables the names of the tables' files
   */
  answered(sequence: number, before: number, tables: string): void {
    // Out of order, the older answer proves nothing.
    if (sequence < this.#acknowledged) return
    if (before < this.#acknowledged || (this.#tables !== undefined && this.#tables !== tables)) this.#count++
    this.#acknowledged = sequence
    this.#tables = tables
  }
}
