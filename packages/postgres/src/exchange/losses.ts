import { SentLife } from '@weir/core/sync'

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
  readonly #sent = new SentLife()

  /**
   * Returns the number of the next call, how long the database must remember it, and whether it must still remember the last one.
   *
   * @param now on the monotonic clock
   * @param life as `lifeOf` returns it
   */
  next(now: number, life: number): { readonly sequence: number; readonly kept: number; readonly matters: boolean } {
    const matters = this.#sent.matters(now)
    return { sequence: ++this.#last, kept: this.#sent.sent(now, life), matters }
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
   * @param matters whether the database must have remembered it
   */
  answered(sequence: number, before: number, tables: string, matters: boolean): void {
    // The reply of an older call proves nothing if it arrives late.
    if (sequence < this.#acknowledged) return
    if ((matters && before < this.#acknowledged) || (this.#tables !== undefined && this.#tables !== tables)) this.#count++
    this.#acknowledged = sequence
    this.#tables = tables
  }
}
