import type { Policy } from '../decide/policy.ts'
import { WeirError } from '../report/errors.ts'
import { show } from '../report/show.ts'

const DAY = 86_400_000

/** Tells once of each policy with long intervals where these begin: few expect a week to begin on a Thursday. */
export function noticeLongIntervals(policies: readonly Policy[], warn: (error: WeirError, subject: string) => void): void {
  for (const { name, interval, calendar, algorithm } of policies) {
    if (algorithm.calendar !== true || calendar !== undefined || interval < DAY) continue
    const message = `The policy ${show(name)} has intervals of ${interval / DAY} d, counted from the Unix epoch in UTC: those of a week begin on Thursdays. Give interval: calendar("day"), "week" or "month"; see @weir/core/docs/guides/windows.md.`
    warn(new WeirError('WEIR_WARN_UTC_INTERVAL', message), name)
  }
}
