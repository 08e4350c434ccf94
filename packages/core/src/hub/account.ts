/**
 * Counts roughly the bytes of a hub's memory that a child process uses, so that it can't fill its parent's memory. Throttlers in the hub's
 * own process have no account, because they can fill that memory anyway.
 */
export class Account {
  #held = 0
  readonly #most: number
  readonly #within: Account | undefined

  /**
   * @param most - bytes
   * @param within - the account of all children together
   */
  constructor(most: number, within?: Account) {
    this.#most = most
    this.#within = within
  }

  /** Bytes in use. */
  get held(): number {
    return this.#held
  }

  /** Takes these bytes, or none if they exceed a bound. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#most || this.#within?.take(bytes) === false) return false
    this.#held += bytes
    return true
  }

  release(bytes: number): void {
    this.#held -= bytes
    this.#within?.release(bytes)
  }
}

/** The accounts that pay for objects that are forgotten together, and their bytes. */
export class Tally {
  readonly #bytes = new Map<Account, number>()

  /** Notes the bytes that an account has used for them. */
  note(account: Account, bytes: number): void {
    this.#bytes.set(account, (this.#bytes.get(account) ?? 0) + bytes)
  }

  /** Returns all bytes to their accounts, because the objects are forgotten. */
  release(): void {
    for (const [account, bytes] of this.#bytes) account.release(bytes)
    this.#bytes.clear()
  }
}

/**
 * Bytes of a process's counts in a cell, of an open reservation of its lease, of a cell or a block with its key, and of a policy: measured,
 * and rounded up.
 */
export const NODE_BYTES = 150
export const RETURN_BYTES = 90
export const KEY_BYTES = 500
export const POLICY_BYTES = 2_000

export function keyBytes(key: string): number {
  return KEY_BYTES + 2 * key.length
}
