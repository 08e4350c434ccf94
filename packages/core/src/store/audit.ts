/** The most entries that a store keeps. */
export const MOST_AUDITED = 1_000
/** The most UTF-16 units of an entry. */
export const LONGEST_AUDITED = 1_000
/** Milliseconds for which a store keeps an entry: 90 days. */
export const AUDITED_FOR = 7_776_000_000

/** The log of manual actions in a store: blocks, unblocks and resets, each as one text. */
export interface AuditLog {
  /**
   * Adds an entry of at most 1,000 UTF-16 units. The store keeps the newest 1,000 entries, for 90 days. An entry that is sent twice may
   * appear twice.
   *
   * @throws (rejects) if the store does not answer
   */
  add(entry: string): Promise<void>
  /**
   * Returns the newest entries, the newest one first.
   *
   * @param most 1 to 1,000
   * @throws (rejects) if the store does not answer
   */
  list(most: number): Promise<readonly string[]>
}
