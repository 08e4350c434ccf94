import type { IncomingMessage } from 'node:http'
import { WeirError } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { readBody } from './body.ts'
import type { Found } from './protocol.ts'
import type { DashboardThrottler } from './source.ts'

/** Keys may be long: an action holds one. */
const LONGEST_BODY = 300_000
const LONGEST_BLOCK = 366 * 24 * 3_600_000

export type ActionName = 'block' | 'unblock' | 'reset' | 'find'

interface Action {
  readonly key: string
  readonly policy: string | undefined
  readonly duration: number
}

/** Something that a client did wrong, in words for him. */
export class BadAction extends Error {}

/**
 * Reads what an action is about, from a body that the framework has parsed or else from the request itself.
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
  const { key, policy, duration = 0 } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  if (typeof key !== 'string') throw new BadAction('"key" must be a string.')
  if (policy !== undefined && typeof policy !== 'string') throw new BadAction('"policy" must be a string.')
  if (typeof duration !== 'number' || !(duration >= 0 && duration <= LONGEST_BLOCK)) {
    throw new BadAction('"duration" must be a number of milliseconds, at most a year.')
  }
  return { key, policy, duration }
}

/** @throws BadAction */
export function act(throttler: DashboardThrottler, name: ActionName, { key, policy, duration }: Action): Found | undefined {
  const options = policy === undefined ? {} : { policy }
  try {
    switch (name) {
      case 'block':
        throttler.block(key, duration, options)
        return undefined
      case 'unblock':
        throttler.unblock(key, options)
        return undefined
      case 'reset':
        throttler.reset(key, options)
        return undefined
      case 'find':
        return find(throttler, key)
    }
  } catch (error) {
    throw error instanceof WeirError ? new BadAction(error.message) : error
  }
}

function find(throttler: DashboardThrottler, key: string): Found {
  const decision = throttler.peek(key, 1)
  const parts = decision.parts.flatMap(({ policy, key: counted, limit: own, remaining, reason, retryAfter }) => {
    // A policy with one key for all has nothing to do with what was looked for.
    if (policy === undefined || counted !== key) return []
    return [{ policy: policy.name, key, limit: policy.algorithm.most?.(own) ?? own, remaining, reason, retryAfter }]
  })
  return { parts, blocked: key === '' ? [] : snapshot(throttler, { contains: key, blocked: 50, top: 0 }).blocked }
}
