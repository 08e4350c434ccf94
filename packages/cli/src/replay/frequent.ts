/** A text, and the part of all texts that it is at least. */
export interface FrequentText {
  readonly text: string
  readonly share: number
}

/** The most texts that are counted at once. Each text with more than a 17th of the requests is among them. */
const MOST = 16
/** The longest part of a text that is kept. */
const LONGEST = 200

/** Counts the most frequent of any number of texts, in bounded memory (Misra and Gries). */
export class Frequent {
  readonly #counts = new Map<string, number>()
  #total = 0

  add(text: string): void {
    this.#total++
    const start = text.slice(0, LONGEST)
    const known = this.#counts.get(start)
    if (known !== undefined) this.#counts.set(start, known + 1)
    // Copies the text, because a substring keeps the whole piece of the log in memory.
    else if (this.#counts.size < MOST) this.#counts.set(Buffer.from(start).toString(), 1)
    else this.#decrement()
  }

  /** The most frequent texts, most frequent first. */
  top(most: number): readonly FrequentText[] {
    const sorted = [...this.#counts].sort(([, one], [, other]) => other - one)
    return sorted.slice(0, most).map(([text, count]) => ({ text, share: count / this.#total }))
  }

  #decrement(): void {
    for (const [text, count] of this.#counts) {
      if (count === 1) this.#counts.delete(text)
      else this.#counts.set(text, count - 1)
    }
  }
}
