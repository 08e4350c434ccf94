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
   * Returns the number of the next call, and how long the database must remember it.
   *
   * @param now on the monotonic clock
   * @param life as `lifeOf` returns it
   */
  next(now: number, life: number): { readonly sequence: number; readonly kept: number } {
    return { sequence: ++this.#last, kept: this.#sent.sent(now, life) }
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
   * @param sent when the call was sent, on the monotonic clock
   * @param life as for `next`
   */
  answered(sequence: number, before: number, tables: string, sent: number, life: number): void {
    const matters = this.#sent.answered(sent, life)
    // The reply of an older call proves nothing if it arrives late.
    if (sequence < this.#acknowledged) return
    if ((matters && before < this.#acknowledged) || (this.#tables !== undefined && this.#tables !== tables)) this.#count++
    this.#acknowledged = sequence
    this.#tables = tables
  }
}
