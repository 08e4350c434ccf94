/**
 * About how many bytes of a hub's memory somebody holds, so that a child process can't fill its parent's. Nodes of the same
 * process have none: they share its memory and can fill it anyway.
 */
export class Account {
  #held = 0
  readonly #most: number
  readonly #within: Account | undefined

  /**
   * @param most - bytes
   * @param within - what all children hold together
   */
  constructor(most: number, within?: Account) {
    this.#most = most
    this.#within = within
  }

  /** Bytes. */
  get held(): number {
    return this.#held
  }

  /** Takes so many bytes, or none if they are too many. */
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

  /** All of it is forgotten. */
  release(): void {
    for (const [account, bytes] of this.#bytes) account.release(bytes)
    this.#bytes.clear()
  }
}

/** A node's counts in a cell; a cell, or a block, with its key; a policy. Measured, and rounded up. */
export const NODE_BYTES = 150
export const KEY_BYTES = 500
export const POLICY_BYTES = 2_000

export function keyBytes(key: string): number {
  return KEY_BYTES + 2 * key.length
}
