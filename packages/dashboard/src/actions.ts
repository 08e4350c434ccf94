import type { IncomingMessage } from 'node:http'
import type { Throttler } from '@weir/core'
import { WeirError } from '@weir/core'
import { type AdapterSide, adapterOf } from '@weir/core/adapter'
import { snapshot } from '@weir/core/inspect'
import { readBody } from './body.ts'
import { type KeyMemory, LONGEST_NOTE } from './key-memory.ts'
import type { Found } from './protocol.ts'

/** Bytes. An action contains a key, and keys may be long. */
const LONGEST_BODY = 300_000
/** The key that all requests share in a policy with `key: 'all'`. */
const ALL = 'all'
const LONGEST_BLOCK = 366 * 24 * 3_600_000

export type ActionName = 'block' | 'unblock' | 'reset' | 'find' | 'note' | 'rules'

interface Action {
  readonly key: string
  readonly policy: string | undefined
  readonly duration: number
  readonly note: string
  readonly from: number
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
  return { key, policy, duration, note, from: from as number }
}

/** @throws BadAction */
export function act(
  throttler: Throttler<string, never>,
  keys: KeyMemory,
  name: Exclude<ActionName, 'rules'>,
  { key, policy, duration, note }: Action,
): Found | undefined {
  const options = policy === undefined ? {} : { policy }
  try {
    switch (name) {
      case 'block':
        // A policy with `key: 'all'` has no such key, so a block there would have no effect.
        if (policy === undefined && key !== ALL)
          for (const one of byKeys(adapterOf(throttler))) throttler.block(key, duration, { policy: one })
        else throttler.block(key, duration, options)
        return undefined
      case 'unblock':
        throttler.unblock(key, options)
        return undefined
      case 'reset':
        throttler.reset(key, options)
        return undefined
      case 'note':
        keys.setNote(countedBy(throttler, key), note.trim())
        return undefined
      case 'find':
        return find(throttler, keys, key)
    }
  } catch (error) {
    throw error instanceof WeirError ? new BadAction(error.message) : error
  }
}

function find(throttler: Throttler<string, never>, keys: KeyMemory, given: string): Found {
  const key = countedBy(throttler, given)
  const time = Date.now()
  const parts = throttler.peek(given, 1).parts.flatMap(({ policy, key: counted, limit: own, remaining, reason, retryAfterMs }) => {
    // A policy with `key: 'all'` does not count the key that was searched.
    if (policy === undefined || counted !== key) return []
    const limit = policy.algorithm.most?.(own) ?? own
    const { name, dryRun } = policy
    // A blocked key has no remaining units, so its use is unknown.
    if (reason === 'ok' || reason === 'limit') keys.follow(name, key, Math.max(0, limit - remaining), time)
    return [{ policy: name, key, limit, remaining, reason, retryAfterMs, dryRun, samples: keys.samples(name, key) }]
  })
  const { blocked: found } = snapshot(throttler, { contains: key, blocked: 50, top: 0 })
  const blocked = key === '' ? [] : found.map((one) => ({ ...one, untilIntervalEnd: keys.lastsUntilIntervalEnd(one) }))
  return { key, parts, blocked, matches: [], events: keys.events(key), note: keys.note(key) }
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
