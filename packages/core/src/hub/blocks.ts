import { Offences } from '../keys/offences.ts'
import { type BlockChange, type BlockState, lastCellOf, type StorePolicy } from '../store/contract.ts'
import { endOf } from '../time/intervals.ts'
import { type Account, keyBytes } from './account.ts'
import { type BlockRow, type RowsChanged, rowOf } from './rows.ts'

/** The longest time for which a reset is remembered, in lives of a policy's cells. An epoch in the far future can't prolong it. */
const LONGEST_LIFE = 4

interface Block {
  readonly policyId: string
  readonly key: string
  /** The time at which the block ends, or was lifted. */
  readonly end: number
  /** The end of the longest block that a process may still have. Until then processes receive changes. */
  readonly keep: number
  readonly version: number
  readonly manual: boolean
  /** The key's last reset, or 0, and the time until which it is remembered. */
  readonly epoch: number
  readonly epochUntil: number
  /** The account that pays for the memory. */
  readonly account: Account | undefined
}

/**
 * Blocks, with a log of their changes. A block that was lifted or shortened stays until it would have ended, so that every process that may
 * still have it receives the change, however late. A reset of a key's counts stays as long as processes may have counts from before it.
 * Times are monotonic milliseconds.
 */
export class BlockList {
  readonly #byPolicy = new Map<string, Map<string, Block>>()
  /** Every change, oldest first. An item that is no longer the current block of its key is stale. */
  #log: Block[] = []
  #version: number
  #size = 0
  readonly #offences = new Offences()
  readonly #changed: RowsChanged | undefined

  /**
   * @param origin - versions are larger
   * @param changed - receives each block that changed
   */
  constructor(origin = 0, changed?: RowsChanged) {
    this.#version = origin
    this.#changed = changed
  }

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

  /** Whether a key's block is manual. */
  manual(policyId: string, key: string): boolean {
    return this.#byPolicy.get(policyId)?.get(key)?.manual === true
  }

  /** The last reset of a key that some processes may not have received, or 0. */
  epoch(policyId: string, key: string, now: number): number {
    const block = this.#byPolicy.get(policyId)?.get(key)
    return block !== undefined && block.epochUntil > now ? block.epoch : 0
  }

  /**
   * Remembers a reset, and ends a block that is not manual. Returns whether the reset is new, or undefined if the account is used up.
   *
   * @param wall - the time that the processes agree on
   */
  reset(policy: StorePolicy, key: string, epoch: number, now: number, wall: number, account?: Account): boolean | undefined {
    const { id, width, cells, ttl } = policy
    if (epoch <= this.epoch(id, key, now)) return false
    if (account?.take(keyBytes(key)) === false) return undefined
    this.#offences.forget(offenceId(id, key))
    const life = Math.min(endOf(lastCellOf(epoch, width), width) - wall + ttl, LONGEST_LIFE * (cells * width + ttl))
    const end = this.manual(id, key) ? now + this.remaining(id, key, now) : now
    this.#put(id, key, end, end > now, { epoch, epochUntil: now + Math.max(0, life) }, account)
    return true
  }

  /** Changes a block. Returns whether anything changed, or undefined if the account is used up. */
  change({ policy, key, kind, remaining, growth, manual, epoch = 0 }: BlockChange, now: number, account?: Account): boolean | undefined {
    const left = this.remaining(policy.id, key, now)
    const wanted = kind === 'lift' ? 0 : Math.max(0, remaining)
    if (kind === 'exceeded' && (left > 0 || epoch < this.epoch(policy.id, key, now))) return false
    if (kind === 'restore' && left >= wanted) return false
    if (wanted === 0 && left === 0) return false
    if (account?.take(keyBytes(key)) === false) return undefined
    const grown = growth === undefined || kind !== 'exceeded' ? wanted : this.#offences.next(offenceId(policy.id, key), wanted, growth, now)
    this.#put(policy.id, key, now + grown, kind === 'set' || (kind === 'restore' && manual === true), undefined, account)
    return true
  }

  /** Changes after `version`, oldest first. Without a version: all blocks and resets that last. */
  since(version: number | undefined, policyIds: ReadonlySet<string>, now: number): BlockState[] {
    const states: BlockState[] = []
    let first = this.#log.length
    while (first > 0 && (this.#log[first - 1] as Block).version > (version ?? 0)) first--
    for (let i = first; i < this.#log.length; i++) {
      const block = this.#log[i] as Block
      if (!policyIds.has(block.policyId) || !this.#isCurrent(block)) continue
      const remaining = Math.max(0, block.end - now)
      const reset = block.epochUntil > now
      if (remaining === 0 && !reset && version === undefined) continue
      const { policyId, key, epoch } = block
      states.push({ policyId, key, remaining, ...(remaining > 0 && block.manual && { manual: true }), ...(reset && { epoch }) })
    }
    return states
  }

  /** Takes over a block of a former life. Returns whether it still matters, and the account has room for it. */
  restore({ policyId, key, end, keep, manual, epoch, epochUntil }: BlockRow, now: number, account?: Account): boolean {
    if (keep <= now || account?.take(keyBytes(key)) === false) return false
    this.#add({ policyId, key, end, keep, version: ++this.#version, manual, epoch, epochUntil, account })
    return true
  }

  sweep(now: number): void {
    this.#offences.sweep(now)
    for (const block of this.#log) if (block.keep <= now && this.#isCurrent(block)) this.#delete(block)
    this.#log = this.#log.filter((block) => this.#isCurrent(block))
  }

  /** Forgets all blocks. The version stays, so that cursors of earlier replies keep their meaning. */
  clear(): void {
    this.#byPolicy.clear()
    this.#log = []
    this.#size = 0
    this.#offences.clear()
  }

  /** @param reset - undefined to keep the known one */
  #put(
    policyId: string,
    key: string,
    end: number,
    manual: boolean,
    reset: Pick<Block, 'epoch' | 'epochUntil'> | undefined,
    account: Account | undefined,
  ): void {
    const current = this.#byPolicy.get(policyId)?.get(key)
    const { epoch, epochUntil } = reset ?? current ?? { epoch: 0, epochUntil: Number.NEGATIVE_INFINITY }
    const keep = Math.max(end, epochUntil, current?.keep ?? 0)
    this.#add({ policyId, key, end, keep, version: ++this.#version, manual, epoch, epochUntil, account })
    this.#report(policyId, key)
  }

  #add(block: Block): void {
    const { policyId, key } = block
    let keys = this.#byPolicy.get(policyId)
    if (keys === undefined) this.#byPolicy.set(policyId, (keys = new Map()))
    const current = keys.get(key)
    if (current === undefined) this.#size++
    else current.account?.release(keyBytes(key))
    keys.set(key, block)
    this.#log.push(block)
  }

  #report(policyId: string, key: string): void {
    this.#changed?.(rowOf('block', policyId, key), () => {
      const block = this.#byPolicy.get(policyId)?.get(key)
      if (block === undefined) return undefined
      const { end, keep, manual, epoch, epochUntil } = block
      return { type: 'block', policyId, key, end, keep, manual, epoch, epochUntil }
    })
  }

  #isCurrent(block: Block): boolean {
    return this.#byPolicy.get(block.policyId)?.get(block.key) === block
  }

  #delete(block: Block): void {
    const keys = this.#byPolicy.get(block.policyId)
    if (keys?.delete(block.key)) this.#size--
    block.account?.release(keyBytes(block.key))
    if (keys?.size === 0) this.#byPolicy.delete(block.policyId)
    this.#report(block.policyId, block.key)
  }
}

function offenceId(policyId: string, key: string): string {
  return `${policyId}\n${key}`
}
