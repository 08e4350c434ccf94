/** The handlers of `GET /work`: each runs until a case ends it. */
export class Work {
  /** The number of running handlers, and the most that ran at a time. */
  running = 0
  most = 0
  /** The number of handlers that have started so far. */
  begun = 0
  readonly #ends: ((error?: Error) => void)[] = []

  /** Runs as part of a handler. */
  readonly run = async (): Promise<void> => {
    this.begun++
    this.most = Math.max(this.most, ++this.running)
    try {
      await new Promise<void>((resolve, reject) => {
        this.#ends.push((error) => (error === undefined ? resolve() : reject(error)))
      })
    } finally {
      this.running--
    }
  }

  /** Ends the handlers that have run for longest, by default all. */
  end(count: number = this.#ends.length, error?: Error): void {
    for (const end of this.#ends.splice(0, count)) end(error)
  }
}
