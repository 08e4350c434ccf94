/**
 * Where rules are kept: a file, a key of a store, an address. What it holds is text, which is read and checked by who follows it.
 * `rulesSourceContract` of `@weir/testing` checks one.
 */
export interface RulesSource {
  /** The name of the source for messages, such as `the file rules.yaml`. It must not contain secrets, because it is logged. */
  readonly name: string
  /** How often it is read whatever `watch` says, in milliseconds, since a message may be lost; from 100 on. */
  readonly interval: number
  /** Milliseconds for which a text must not change before it is used, for sources that others may be writing to meanwhile. Default 0. */
  readonly settle?: number
  /**
   * Reads the text that it holds; undefined when there is none yet. Rejects when it can't be read.
   *
   * @param signal is aborted when nobody waits any more
   */
  read(signal: AbortSignal): Promise<string | undefined>
  /** Calls `changed` whenever what it holds may be another, until the returned function is called. What fails in it is left to `interval`. */
  watch?(changed: () => void): () => void
  /**
   * Puts another text in place of `before`, at once or not at all.
   *
   * @param before what it is expected to hold; undefined for nothing
   * @returns false when it holds something else: somebody else was faster
   */
  replace?(before: string | undefined, text: string): Promise<boolean>
  /** The texts that it held, the newest first, which is the one that it holds. */
  history?(most: number): Promise<readonly string[]>
}
