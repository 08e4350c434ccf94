/** The number of causes that are distinguished, and the characters of each that are compared. They keep the list bounded. */
const MOST = 1_000
const LONGEST = 200

/** Remembers causes that have been reported. */
export class Once {
  readonly #said = new Set<string>()

  /** Whether a cause occurs for the first time. After 1,000 causes it returns false for every new one. */
  first(cause: string): boolean {
    const id = cause.slice(0, LONGEST)
    if (this.#said.size >= MOST || this.#said.has(id)) return false
    this.#said.add(id)
    return true
  }
}
