import { Offences } from '../keys/offences.ts'
import type { BlockChange, BlockState } from '../store/contract.ts'
import { type Account, keyBytes } from './account.ts'

interface Block {
  readonly policyId: string
  readonly key: string
  /** When the block ends, or when it was lifted. */
  readonly end: number
  /** When the longest block that anybody may still hold ends: until then, changes are handed out. */
  readonly keep: number
  readonly version: number
  /** Whose memory it is. */
  readonly account: Account | undefined
}

/**
 * Blocks, with a log of changes for those who ask what is new. A block that was lifted or shortened stays until it would
 * have ended, so that everybody who may still hold it hears of that, however late. Times are monotonic milliseconds.
 */
export class BlockList {
  readonly #byPolicy = new Map<string, Map<string, Block>>()
  /** Every change, oldest first. An item that is no longer the current block of its key is stale. */
  #log: Block[] = []
  #version = 0
  #size = 0
  readonly #offences = new Offences()

  get version(): number {
    return this.#version
  }

  get size(): number {
    return this.#size
  }

  /** Milliseconds for which the key is still blocked. */
  remaining(policyId: string, key: string, now: number): number {
    const block = this.#byPolicy.get(policyId)?.get(key)
    return block === undefined ? 0 : Math.max(0, block.end - now)
  }

  /** Returns whether anything changed; undefined when the account has no room for it. */
  change({ policy, key, kind, remaining, growth }: BlockChange, now: number, account?: Account): boolean | undefined {
    const left = this.remaining(policy.id, key, now)
    const wanted = kind === 'lift' ? 0 : Math.max(0, remaining)
    if (kind === 'exceeded' && left > 0) return false
    if (kind === 'restore' && left >= wanted) return false
    if (wanted === 0 && left === 0) return false
    if (account?.take(keyBytes(key)) === false) return undefined
    const grown = growth === undefined || kind !== 'exceeded' ? wanted : this.#offences.next(`${policy.id}\n${key}`, wanted, growth, now)
    this.#put(policy.id, key, now + grown, account)
    return true
  }

  /** Changes after `version`, oldest first; without one, all blocks that last. */
  since(version: number | undefined, policyIds: ReadonlySet<string>, now: number): BlockState[] {
    const states: BlockState[] = []
    let first = this.#log.length
    while (first > 0 && (this.#log[first - 1] as Block).version > (version ?? 0)) first--
    for (let i = first; i < this.#log.length; i++) {
      const block = this.#log[i] as Block
      if (!policyIds.has(block.policyId) || !this.#isCurrent(block)) continue
      const remaining = Math.max(0, block.end - now)
      if (remaining > 0 || version !== undefined) states.push({ policyId: block.policyId, key: block.key, remaining })
    }
    return states
  }

  sweep(now: number): void {
    this.#offences.sweep(now)
    for (const block of this.#log) if (block.keep <= now && this.#isCurrent(block)) this.#delete(block)
    this.#log = this.#log.filter((block) => this.#isCurrent(block))
  }

  /** Forgets all blocks. The version stays, so that cursors handed out before keep their meaning. */
  clear(): void {
    this.#byPolicy.clear()
    this.#log = []
    this.#size = 0
    this.#offences.clear()
  }

  #put(policyId: string, key: string, end: number, account: Account | undefined): void {
    let keys = this.#byPolicy.get(policyId)
    if (keys === undefined) this.#byPolicy.set(policyId, (keys = new Map()))
    const current = keys.get(key)
    if (current === undefined) this.#size++
    else current.account?.release(keyBytes(key))
    const block: Block = { policyId, key, end, keep: Math.max(end, current?.keep ?? 0), version: ++this.#version, account }
    keys.set(key, block)
    this.#log.push(block)
  }

  #isCurrent(block: Block): boolean {
    return this.#byPolicy.get(block.policyId)?.get(block.key) === block
  }

  #delete(block: Block): void {
    const keys = this.#byPolicy.get(block.policyId)
    if (keys?.delete(block.key)) this.#size--
    block.account?.release(keyBytes(block.key))
    if (keys?.size === 0) this.#byPolicy.delete(block.policyId)
  }
}
