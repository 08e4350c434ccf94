import type { Found, View } from '../src/protocol.ts'
import { span } from './format.ts'

const TEXTS: Readonly<Record<string, string>> = {
  ok: 'would be allowed',
  limit: 'at its limit',
  cooldown: 'exceeded its limit',
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

/**
 * Units that a key has used. After an overshoot the reports of all processes show more than the limit. This process alone shows at most the
 * limit.
 */
export function usedOf({ policy, key, limit, remaining }: Found['parts'][number], { top }: View): number {
  const told = top.find((one) => one.policy === policy && one.key === key)
  return Math.max(0, limit - remaining, told?.used ?? 0)
}
