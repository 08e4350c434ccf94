import { type BlockChange, type BlockState, endOf, lastCellOf, type StorePolicy } from '@weir/core/sync'
import type { Change } from './records.ts'

/** The longest time for which a reset is remembered, in lifetimes of the policy's cells. It bounds resets with a time far in the future. */
const LONGEST_LIFE = 4
/** Extra milliseconds for which changes stay in etcd, because heartbeats may be late. */
const GRACE = 60_000

/** A key's block and its last reset, as etcd keeps them. Times are the processes' common time. */
export interface Block {
  readonly policyId: string
  readonly key: string
  /** The end of the block, 0 after it was lifted: the next request may be decided at the very moment of the lift. */
  readonly end: number
  /** The time until which processes may still have a longer block. */
  readonly keep: number
  readonly manual: boolean
  /** The last reset, 0 for none, and the time until which it is remembered. */
  readonly epoch: number
  readonly epochUntil: number
  /** How often the key was blocked lately, and the time until which that is remembered. */
  readonly offences: number
  readonly offencesUntil: number
}

function noBlock(policyId: string, key: string): Block {
  return { policyId, key, end: 0, keep: 0, manual: false, epoch: 0, epochUntil: 0, offences: 0, offencesUntil: 0 }
}

/** @returns undefined if the text can't be read */
export function readBlock(text: string): Block | undefined {
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!Array.isArray(list) || list.length !== 9) return undefined
  const [policyId, key, ...numbers] = list as readonly unknown[]
  if (typeof policyId !== 'string' || typeof key !== 'string') return undefined
  if (!numbers.every((number) => typeof number === 'number' && number >= 0 && number <= Number.MAX_SAFE_INTEGER)) return undefined
  const [end, keep, manual, epoch, epochUntil, offences, offencesUntil] = numbers as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  if (!Number.isSafeInteger(epoch)) return undefined
  return { policyId, key, end, keep, manual: manual === 1, epoch, epochUntil, offences, offencesUntil }
}

function textOf({ policyId, key, end, keep, manual, epoch, epochUntil, offences, offencesUntil }: Block): string {
  return JSON.stringify([policyId, key, end, keep, manual ? 1 : 0, epoch, epochUntil, offences, offencesUntil])
}

/** Returns the last reset that processes may not have received yet, 0 for none. */
export function epochOf(block: Block | undefined, now: number): number {
  return block !== undefined && block.epochUntil > now ? block.epoch : 0
}

export function blockedOf(block: Block | undefined, now: number): { readonly blocked: number; readonly manual?: true } {
  const blocked = Math.max(0, (block?.end ?? 0) - now)
  return blocked > 0 && block?.manual === true ? { blocked, manual: true } : { blocked }
}

/** The state for heartbeats and announcements. */
export function stateOf(block: Block, now: number): BlockState {
  const { blocked, manual } = blockedOf(block, now)
  const epoch = epochOf(block, now)
  return { policyId: block.policyId, key: block.key, remaining: blocked, ...(manual && { manual }), ...(epoch > 0 && { epoch }) }
}

export interface Changed {
  /** Undefined if nothing changed. */
  readonly news: BlockState | undefined
  readonly remaining: number
}

/**
 * @param name the key of the block in etcd
 * @param now the processes' common time
 */
export function blockChange(change: BlockChange, name: string, now: number): Change<Changed> {
  return {
    names: [name],
    decide([text]) {
      const known = text === undefined ? undefined : readBlock(text)
      const block = known ?? noBlock(change.policy.id, change.key)
      const next = change.kind === 'reset' ? afterReset(block, change.policy, change.epoch ?? 0, now) : afterChange(block, change, now)
      if (next === undefined) return { writes: [undefined], result: { news: undefined, remaining: blockedOf(known, now).blocked } }
      const kept: Block = { ...next, keep: Math.max(next.end, next.epochUntil, block.keep) }
      const life = Math.max(kept.keep, kept.offencesUntil) - now + GRACE
      return { writes: [{ value: textOf(kept), life }], result: { news: stateOf(kept, now), remaining: blockedOf(kept, now).blocked } }
    },
  }
}

/** @returns undefined if nothing changes */
function afterChange(block: Block, { kind, remaining, growth, manual, epoch = 0 }: BlockChange, now: number): Block | undefined {
  const left = blockedOf(block, now).blocked
  const wanted = kind === 'lift' ? 0 : Math.max(0, remaining)
  if (kind === 'exceeded' && (left > 0 || epoch < epochOf(block, now))) return undefined
  if (kind === 'restore' && left >= wanted) return undefined
  if (wanted === 0 && left === 0) return undefined
  const byHand = kind === 'set' || (kind === 'restore' && manual === true)
  if (wanted === 0) return { ...block, end: 0, manual: false }
  if (growth === undefined || kind !== 'exceeded') return { ...block, end: now + wanted, manual: byHand }
  const offences = block.offencesUntil > now ? block.offences : 0
  const grown = Math.min(Math.max(wanted, growth.max), wanted * growth.factor ** offences)
  return { ...block, end: now + grown, manual: byHand, offences: offences + 1, offencesUntil: now + grown + growth.memory }
}

function afterReset(block: Block, { width, cells, ttl }: StorePolicy, epoch: number, now: number): Block | undefined {
  if (epoch <= epochOf(block, now)) return undefined
  const life = Math.min(endOf(lastCellOf(epoch, width), width) - now + cells * width + ttl, LONGEST_LIFE * (cells * width + ttl))
  const { manual = false } = blockedOf(block, now)
  const end = manual ? block.end : 0
  return { ...block, end, manual, epoch, epochUntil: now + Math.max(0, life), offences: 0, offencesUntil: 0 }
}
