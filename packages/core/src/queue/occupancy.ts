/**
 * Counts the requests that wait, in all and for each client. A client may have as many places as are free: alone half of all of them, and whatever
 * a few clients take, one without a request in the queue finds room.
 */
export class Occupancy {
  /** Requests that wait. */
  size = 0
  readonly #most: number
  readonly #clients = new Map<string, number>()

  /** @param most requests that may wait */
  constructor(most: number) {
    this.#most = most
  }

  /**
   * Whether a client may have no further request here.
   *
   * @param client undefined where it is not known: then only the sum counts
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
