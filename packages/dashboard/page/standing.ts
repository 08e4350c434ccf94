import type { BlockedView, Found, TopKey, View } from '../src/protocol.ts'
import { span } from './format.ts'

const TEXTS: Readonly<Record<string, string>> = {
  ok: 'would be allowed',
  limit: 'at its limit',
  cooldown: 'in cooldown',
  blocked: 'blocked manually',
  storeDown: 'rejected while the store is down',
  overflow: 'rejected because the table of keys is full',
}

/** The result of a key's next request, as text. A dry run rejects no request. */
export function standing({ reason, retryAfterMs, dryRun }: Found['parts'][number]): { readonly text: string; readonly tone: string } {
  const left = retryAfterMs > 0 ? `, ${span(retryAfterMs)} left` : ''
  const text = (TEXTS[reason] ?? reason) + left
  if (reason === 'ok') return { text, tone: 'ok' }
  return dryRun ? { text: `${text}, but allowed because of the dry run`, tone: 'warn' } : { text, tone: 'no' }
}

/** The time until a block ends, with the reason if the policy's cooldown is shorter. */
export function leftOf({ remainingMs, untilIntervalEnd }: BlockedView): string {
  return `${span(remainingMs)}${untilIntervalEnd ? ', until the interval ends' : ''}`
}

/**
 * Units that a key has used, and its debt. After an overshoot the reports of all processes show more than the limit. This process alone
 * shows at most the limit.
 */
export function usedOf({ policy, key, limit, remaining }: Found['parts'][number], { top }: View): Pick<TopKey, 'used' | 'debt'> {
  const reported = top.find((one) => one.policy === policy && one.key === key)
  return { used: Math.max(0, limit - remaining, reported?.used ?? 0), debt: reported?.debt ?? 0 }
}
