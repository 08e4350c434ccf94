/** Causes that are told apart, and characters of one that are looked at, so that the list of them stays bounded. */
const MOST = 1_000
const LONGEST = 200

/** Remembers what has been said. */
export class Once {
  readonly #said = new Set<string>()

  /** Whether a cause comes for the first time. Beyond 1,000 causes nothing does. */
  first(cause: string): boolean {
    const id = cause.slice(0, LONGEST)
    if (this.#said.size >= MOST || this.#said.has(id)) return false
    this.#said.add(id)
    return true
  }
}
