/**
 * A place with rules: a file, a key of a store, or an address. It returns the rules as text, and `follow` reads and checks the text.
 * `rulesSourceContract` of `@weir/testing` checks an implementation.
 */
export interface RulesSource {
  /** The name of the source for messages, such as `the file rules.yaml`. It must not contain secrets, because it is logged. */
  readonly name: string
  /**
   * Milliseconds between two reads, at least 100. The source is read even if `watch` reports no change, because a notification may be lost.
   */
  readonly interval: number
  /** Milliseconds for which a text must not change before it is used, for sources that may be read during a write. Default 0. */
  readonly settle?: number
  /**
   * Reads the current text. Undefined if there is none yet. Rejects if the source can't be read.
   *
   * @param signal is aborted when the text is no longer needed
   */
  read(signal: AbortSignal): Promise<string | undefined>
  /**
   * Calls `changed` whenever the text may have changed, until the returned function is called. It may fail silently, because the source is
   * also read every `interval`.
   */
  watch?(changed: () => void): () => void
  /**
   * Replaces the text `before` by another text, completely or not at all.
   *
   * @param before the expected current text; undefined for none
   * @returns false if the current text differs, because another writer was faster
   */
  replace?(before: string | undefined, text: string): Promise<boolean>
  /** Returns the texts of the source, newest first. The first one is the current text. */
  history?(most: number): Promise<readonly string[]>
}
