import type { Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import type { PolicyView } from './protocol.ts'
import { visible } from './visible.ts'

/** Longest text of a key, in UTF-16 units. */
const LONGEST = 100

/** The key and the cooldown of each policy of this process, by name. */
export function settingsOf(throttler: Throttler<string, never>): ReadonlyMap<string, Pick<PolicyView, 'keyedBy' | 'cooldownMs'>> {
  const { policies, rules } = adapterOf(throttler)
  return new Map(
    policies.map(({ name, cooldown }, i) => {
      const key = rules[i]?.key
      return [name, { ...(key !== undefined && { keyedBy: visible(textOf(key)).slice(0, LONGEST) }), cooldownMs: cooldown }]
    }),
  )
}

/** Writes `['route', header('x-api-key')]` as `route, header x-api-key`. */
function textOf(key: unknown): string {
  if (Array.isArray(key)) return key.map(textOf).join(', ')
  if (typeof key === 'function') return 'a function'
  if (typeof key === 'object' && key !== null)
    return Object.entries(key)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')
  return String(key)
}
