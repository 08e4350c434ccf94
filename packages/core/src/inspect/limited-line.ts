import { printable, show } from '../report/show.ts'
import type { RejectionReason } from '../report/stats.ts'
import { adapterOf } from '../throttler/adapter-side.ts'
import type { Throttler } from '../throttler/throttler.ts'
import { snapshot } from './snapshot.ts'

const REASONS: Readonly<Record<RejectionReason, string>> = {
  limit: 'at its limit',
  cooldown: 'cooldown',
  blocked: 'manual block',
  storeDown: 'store down',
  overflow: 'table full',
}

/** Options of `limitedLine`. */
export interface LimitedLineOptions {
  /**
   * Limits how many keys the line names, 1 to 100.
   *
   * @default 5
   */
  readonly most?: number
}

/**
 * Names the keys that this process rejected in the last minute, as one line for a log. Dry runs and candidate rules are left out. Keys are
 * escaped, so that none can begin a new line.
 *
 * @example
 * process.on('SIGUSR2', () => logger.info(limitedLine(throttler)))
 */
export function limitedLine(throttler: Throttler<string, never>, { most = 5 }: LimitedLineOptions = {}): string {
  const { clock } = adapterOf(throttler).inspected
  const { limited, policies } = snapshot(throttler, { top: 100, blocked: 0 })
  const enforced = new Set(policies.flatMap(({ name, dryRun }) => (dryRun ? [] : [name])))
  const now = limited.filter(({ policy, rejectedLastMinute }) => rejectedLastMinute > 0 && enforced.has(policy))
  if (now.length === 0) return 'weir: no key was limited in the last minute'
  const named = now
    .slice(0, Math.min(100, Math.max(1, most)))
    .map(({ policy, key, reason, rejectedLastMinute, rejected, sinceFirstMs }) => {
      // biome-ignore lint/style/noRestrictedGlobals: it reads a date, not the time.
      const since = new Date(clock.now() - sinceFirstMs).toISOString()
      return `${show(key)} by ${printable(policy, 50)} (${REASONS[reason]}), ${rejectedLastMinute} rejected, ${rejected} since ${since}`
    })
  const more = now.length - named.length
  return `weir: limited in the last minute: ${named.join('. ')}${more > 0 ? `. And ${more} more` : ''}`
}
