import type { Policy } from '../decide/policy.ts'
import { WeirError } from '../report/errors.ts'
import { show } from '../report/show.ts'

const DAY = 86_400_000

/** Warns once of each policy with long intervals when these begin: few users expect a week to begin on a Thursday. */
export function noticeLongIntervals(policies: readonly Policy[], warn: (error: WeirError, subject: string) => void): void {
  for (const { name, interval, calendar, algorithm } of policies) {
    if (algorithm.calendar !== true || calendar !== undefined || interval < DAY) continue
    const begin = interval % (7 * DAY) === 0 ? 'on Thursdays at midnight UTC' : 'at midnight UTC'
    const unit = interval < 7 * DAY ? 'day' : interval < 28 * DAY ? 'week' : 'month'
    const message = `Policy ${show(name)}: intervals of ${interval / DAY} d begin ${begin}. For a local ${unit} use interval: calendar("${unit}", { timeZone: "Europe/Prague" }).`
    warn(new WeirError('WEIR_WARN_UTC_INTERVAL', message), name)
  }
}
