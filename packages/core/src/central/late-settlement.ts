import type { Question } from '../store/contract.ts'
import { worthUntil } from './worth.ts'

/**
 * The question to send for a settlement that an outage has kept back until the end of its reservation has passed. By then the store counts
 * the units that were due, so the settlement corrects these.
 *
 * @param at the time now, as the processes agree on it
 */
export function corrected(question: Question, at: number): Question {
  const { kind, units: used, reservation, ...rest } = question
  if (kind !== 'settle' || reservation === undefined || at < reservation.end || used === reservation.due) return question
  // Units that have left the count change nothing.
  if (at >= worthUntil(question)) return question
  const more = used - reservation.due
  return { ...rest, kind: more > 0 ? 'add' : 'give-back', units: Math.abs(more) }
}
