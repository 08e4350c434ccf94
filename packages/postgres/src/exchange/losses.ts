/**
 * Detects that the store has lost data. Each call of a process has a number, which the database remembers in the same transaction. If a
 * call finds a smaller number than the last acknowledged one, the database has lost that call: a crash emptied it, or a replica that lagged
 * behind took over. If the tables were emptied manually, the names of their files change.
 */
export class Losses {
  #last = 0
  #acknowledged = 0
  #tables: string | undefined
  #count = 0

  /** Returns the number of the next call. */
  next(): number {
    return ++this.#last
  }

  /** Changes with each loss. */
  get generation(): string {
    return String(this.#count)
  }

  /**
   * Records a reply.
   *
   * @param before the number that the database remembered before the call, 0 for none
   * @param tables the names of the tables' files
   */
  answered(sequence: number, before: number, tables: string): void {
    // The reply of an older call proves nothing if it arrives late.
    if (sequence < this.#acknowledged) return
    if (before < this.#acknowledged || (this.#tables !== undefined && this.#tables !== tables)) this.#count++
    this.#acknowledged = sequence
    this.#tables = tables
  }
}
