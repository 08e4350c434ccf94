import type { Outcome } from '../runs/run.ts'
import { duration, percent, whole } from './format.ts'
import { logAnswer, WRITTEN } from './tables.ts'

/** The result of a run as a sentence, for screen readers. */
export function saidOf(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'lanes': {
      const [weir] = outcome.ways
      if (weir === undefined) return ''
      return `${whole(outcome.requests)} requests: ${percent(weir.allowedOfExact)} of the exact limit were allowed, ${percent(weir.worst)} above the limit in the worst interval.`
    }
    case 'curves': {
      const [label, unit] = outcome.columns[0] ?? ['', 'whole']
      return `${label}. ${outcome.rows.map(({ name, figures }) => `${name}: ${WRITTEN[unit](figures[0] ?? 0)}`).join('. ')}.`
    }
    case 'stream':
      return `Allowed. ${outcome.rows
        .map(
          ({ name, allowed, longestWait }) =>
            `${name}: ${whole(allowed)}${longestWait === 0 ? '' : `, after ${duration(longestWait)} at most`}`,
        )
        .join('. ')}.`
    case 'policy':
      return outcome.log === undefined ? outcome.agreement : `${logAnswer(outcome.log)} ${outcome.agreement}`
  }
}
