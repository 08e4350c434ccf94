import type { IncomingMessage } from 'node:http'
import type { Throttler } from '@weir/core'
import { WeirError } from '@weir/core'
import { type AdapterSide, adapterOf } from '@weir/core/adapter'
import { snapshot } from '@weir/core/inspect'
import { readBody } from './body.ts'
import { type KeyMemory, LONGEST_NOTE } from './key-memory.ts'
import type { Done, Found, View } from './protocol.ts'
import { isCounted, search } from './search.ts'
import type { Undo } from './undo.ts'
import { visible } from './visible.ts'

/** Bytes. An action contains a key, and keys may be long. */
const LONGEST_BODY = 300_000
/** The key that all requests share in a policy with `key: 'all'`. */
const ALL = 'all'
const LONGEST_BLOCK = 366 * 24 * 3_600_000

/** UTF-16 units. */
const LONGEST_REASON = 200

/** Names of actions. The first list only reads. */
export const READS = ['find', 'rules', 'audit', 'series'] as const
export const CHANGES = ['block', 'unblock', 'reset', 'note', 'undo'] as const
export type ActionName = (typeof READS)[number] | Change
export type Change = (typeof CHANGES)[number]

export interface Action {
  readonly key: string
  readonly policy: string | undefined
  readonly duration: number
  readonly note: string
  readonly from: number
  readonly reason: string
  /** The process of a series. */
  readonly node: string | undefined
  /** The offer to undo an action. */
  readonly id: string
}

/** A mistake of a client. The message is for the client. */
export class BadAction extends Error {}

/**
 * Reads the parameters of an action, from a body that the framework has parsed or from the request.
 *
 * @throws BadAction, BadBody
 */
export async function readAction(request: IncomingMessage): Promise<Action> {
  let body = await readBody(request, LONGEST_BODY)
  if (typeof body === 'string') {
    try {
      body = JSON.parse(body)
    } catch {
      throw new BadAction('The body must be JSON.')
    }
  }
  const {
    key,
    policy,
    duration = 0,
    note = '',
    from = 0,
    reason = '',
    node,
    id = '',
  } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  if (typeof key !== 'string') throw new BadAction('"key" must be a string.')
  if (policy !== undefined && typeof policy !== 'string') throw new BadAction('"policy" must be a string.')
  if (typeof duration !== 'number' || !(duration >= 0 && duration <= LONGEST_BLOCK)) {
    throw new BadAction('"duration" must be a number of milliseconds, at most a year.')
  }
  if (typeof note !== 'string' || note.length > LONGEST_NOTE) {
    throw new BadAction(`"note" must be a text of at most ${LONGEST_NOTE} characters.`)
  }
  if (!Number.isSafeInteger(from) || (from as number) < 0) throw new BadAction('"from" must be a whole number of at least 0.')
  if (typeof reason !== 'string' || reason.length > LONGEST_REASON) {
    throw new BadAction(`"reason" must be a text of at most ${LONGEST_REASON} characters.`)
  }
  if (node !== undefined && typeof node !== 'string') throw new BadAction('"node" must be a string.')
  if (typeof id !== 'string') throw new BadAction('"id" must be a string.')
  return { key, policy, duration, note, from: from as number, reason: visible(reason.trim()), node, id }
}

/** @throws BadAction */
export function change(throttler: Throttler<string, never>, keys: KeyMemory, undo: Undo, name: Change, action: Action): Done {
  const { key, policy, duration, note, id } = action
  const now = Date.now()
  try {
    switch (name) {
      case 'note':
        keys.setNote(countedBy(throttler, key), note.trim())
        return { done: true }
      case 'undo': {
        const offer = undo.take(id, key, now)
        if (offer === undefined) throw new BadAction('This can no longer be undone. Undo within 10 s.')
        offer.run()
        return { done: true }
      }
      default: {
        const before = stateOf(throttler, key, policy)
        if (name === 'block') for (const one of blockedIn(throttler, key, policy)) throttler.block(key, duration, one)
        else throttler[name](key, policy === undefined ? {} : { policy })
        const back = undoOf(throttler, name, key, before)
        return { done: true, ...(back !== undefined && { undo: { action: 'undo', key, id: undo.offer(key, back, now) } }) }
      }
    }
  } catch (error) {
    throw error instanceof WeirError ? new BadAction(error.message) : error
  }
}

/** A policy with `key: 'all'` has no other key, so a block of one would have no effect there. */
function blockedIn(throttler: Throttler<string, never>, key: string, policy: string | undefined): { readonly policy?: string }[] {
  if (policy !== undefined) return [{ policy }]
  return key === ALL ? [{}] : byKeys(adapterOf(throttler)).map((one) => ({ policy: one }))
}

/** A key in one policy before an action. */
interface KeyState {
  readonly policy: string
  readonly used: number
  /** Time until which these units count at most, on the monotonic clock. Infinite if they don't end all at once. */
  readonly usedUntil: number
  /** End of its block, in milliseconds since the Unix epoch. 0 without a block. */
  readonly blockedUntil: number
  /** Whether the block is one that a reset lifts. */
  readonly isCooldown: boolean
}

function stateOf(throttler: Throttler<string, never>, given: string, policy: string | undefined): KeyState[] {
  const key = countedBy(throttler, given)
  const { limiters, clock } = adapterOf(throttler).inspected
  return throttler.explain(given).flatMap(({ policy: name, key: counted, blocked, blockedForMs, blockedBy }) => {
    if (counted !== key || (policy !== undefined && policy !== name)) return []
    const limiter = limiters.find((one) => one.policy.name === name)
    const slot = limiter?.table.find(key) ?? -1
    // Slots in use can't be counted again.
    const isCharged = limiter !== undefined && slot >= 0 && limiter.policy.algorithm.id !== 'concurrency'
    const used = isCharged ? limiter.meter.usedOf(slot, clock.monotonic()) : 0
    const usedUntil = limiter?.policy.algorithm.id === 'fixed-window' ? limiter.meter.rollAt : Number.POSITIVE_INFINITY
    const blockedUntil = blocked ? Date.now() + blockedForMs : 0
    return [{ policy: name, used, usedUntil, blockedUntil, isCooldown: blockedBy === 'cooldown' }]
  })
}

/**
 * The opposite of an action, for the state before it. A cooldown that was lifted comes back as a manual block. Undefined if there is nothing
 * to undo.
 */
function undoOf(
  throttler: Throttler<string, never>,
  name: 'block' | 'unblock' | 'reset',
  key: string,
  before: readonly KeyState[],
): (() => void) | undefined {
  const changed = before.filter(
    ({ used, blockedUntil, isCooldown }) => name === 'block' || (name === 'reset' ? used > 0 || isCooldown : blockedUntil > 0),
  )
  if (changed.length === 0) return undefined
  const { clock } = adapterOf(throttler).inspected
  return () => {
    // Rules may have removed a policy meanwhile.
    const names = adapterOf(throttler).policies.map((one) => one.name)
    for (const { policy, used, usedUntil, blockedUntil, isCooldown } of changed.filter((one) => names.includes(one.policy))) {
      const rest = blockedUntil - Date.now()
      // In a new interval the units wouldn't count any more.
      if (name === 'reset' && used > 0 && clock.monotonic() < usedUntil) throttler.charge(key, used, { policy })
      if (name === 'reset' && !isCooldown) continue
      if (rest >= 1) throttler.block(key, rest, { policy })
      else if (name === 'block') throttler.unblock(key, { policy })
    }
  }
}

/** @throws BadAction */
export function find(throttler: Throttler<string, never>, keys: KeyMemory, given: string, view: View | undefined): Found {
  try {
    return found(throttler, keys, given, view)
  } catch (error) {
    throw error instanceof WeirError ? new BadAction(error.message) : error
  }
}

function found(throttler: Throttler<string, never>, keys: KeyMemory, given: string, view: View | undefined): Found {
  const key = countedBy(throttler, given)
  const time = Date.now()
  const isKnown = isCounted(throttler, key, view)
  const parts = (isKnown ? throttler.peek(given, 1).parts : []).flatMap(
    ({ policy, key: counted, limit: own, remaining, reason, retryAfterMs }) => {
      // A policy with `key: 'all'` does not count the key that was searched.
      if (policy === undefined || counted !== key) return []
      const limit = policy.algorithm.most?.(own) ?? own
      const { name, dryRun } = policy
      // A blocked key has no remaining units, so its use is unknown.
      if (reason === 'ok' || reason === 'limit') keys.follow(name, key, Math.max(0, limit - remaining), time)
      return [{ policy: name, key, limit, remaining, reason, retryAfterMs, dryRun, samples: keys.samples(name, key) }]
    },
  )
  const { blocked: all } = snapshot(throttler, { contains: key, blocked: 50, top: 0 })
  const blocked = key === '' ? [] : all.map((one) => ({ ...one, untilIntervalEnd: keys.lastsUntilIntervalEnd(one) }))
  return { key, parts, blocked, matches: search(throttler, key, view), events: keys.events(key), note: keys.note(key) }
}

/** The policies that count by key. */
function byKeys({ policies, rules }: AdapterSide<string, never>): string[] {
  return policies.flatMap(({ name }, i) => (rules[i]?.key === ALL ? [] : [name]))
}

/** The longest key in UTF-16 units that is kept if no policy counts it. */
const LONGEST_KEY = 256

/** The string by which policies count a key. Long keys are cut. */
function countedBy(throttler: Throttler<string, never>, key: string): string {
  return throttler.peek(key, 1).parts.find((part) => part.key !== ALL)?.key ?? key.slice(0, LONGEST_KEY)
}
