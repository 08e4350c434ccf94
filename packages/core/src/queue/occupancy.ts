/**
 * Counts the waiting requests, in total and for each client. A client may use as many positions as are free, so one client alone uses half
 * of the queue. Even if a few clients wait with many requests, a client without a waiting request can enter.
 */
export class Occupancy {
  /** Number of waiting requests. */
  size = 0
  readonly #most: number
  readonly #clients = new Map<string, number>()

  /** @param most the most requests that may wait */
  constructor(most: number) {
    this.#most = most
  }

  /**
   * Whether a client may add no further request.
   *
   * @param client undefined if unknown. Then only the total counts
   */
  isFull(client: string | undefined): boolean {
    return this.#mine(client) >= this.#most - this.size
  }

  add(client: string | undefined): void {
    this.size++
    if (client !== undefined) this.#clients.set(client, this.#mine(client) + 1)
  }

  remove(client: string | undefined): void {
    this.size--
    if (client === undefined) return
    const mine = this.#mine(client) - 1
    if (mine === 0) this.#clients.delete(client)
    else this.#clients.set(client, mine)
  }

  #mine(client: string | undefined): number {
    return client === undefined ? 0 : (this.#clients.get(client) ?? 0)
  }
}
