/**
 * How many of a line's requests one call to the store contains. Several processes wait for the same capacity, and none has the lines of
 * the others. So each requests a small part, again and again. Times are in milliseconds.
 */

/** The most requests in one call, and of one counter at the store at a time. */
export const MOST_TOGETHER = 100
/** Requests of one counter that may be at the store at a time, if each needs its own call. */
const MOST_ASKED = 16
/** The same limit if one call can contain several requests: the others follow together after the replies. */
const MOST_ALONE = 4
/** The next call contains this part of the last granted amount, because small steps share the capacity between processes. */
const LAST_PART = 1 / 3
/**
 * Reservations are requested ahead for this part of the waiting units, or for this time. Because all processes do so, each gets its part of
 * the pace in every round, and none has to wait until the long queue of another one is empty.
 */
const AHEAD_PART = 1 / 8
const AHEAD_FOR = 40
/** Before the last reservations are used, the call has two round trips, the time of a unit and this time. */
const LEAD = 5

/** The part of the remaining capacity that one process requests. It is less than an equal part, because others do the same at once. */
export function ownPart(left: number, processes: number): number {
  return left / (2 * processes - 1)
}

/**
 * The time before a deadline at which the store must be called.
 *
 * @param each the time between two units, if they are reserved ahead
 */
export function leadOf(roundTrip: number, each: number = 0): number {
  return LEAD + 2 * roundTrip + each
}

/**
 * Units to reserve ahead with one call.
 *
 * @param part the process's part of the remaining units
 * @param waiting units of the line
 * @param each the time between two units
 * @param lead as `leadOf`: the reservations must last until the next call is answered
 */
export function unitsAhead(part: number, waiting: number, each: number, lead: number): number {
  return Math.max(part, AHEAD_PART * waiting, AHEAD_FOR / each, lead / each)
}

/** A line whose requests are all alike. Numbers of requests. */
interface Demand {
  /** At the store now. */
  readonly asked: number
  /** Granted in the last turn. Undefined if the requests don't take turns. */
  readonly granted: number | undefined
}

/**
 * The number of requests in the next call. At least 1.
 *
 * @param part the process's part of the remaining capacity, in requests
 * @param fit requests that fit, by the counts of this process
 */
export function requestsAtOnce({ asked, granted }: Demand, part: number, fit: number): number {
  const most = granted === undefined ? part : granted * LAST_PART
  return Math.floor(Math.max(1, Math.min(most, fit - asked, MOST_TOGETHER)))
}

/**
 * The most requests that may be at the store at a time. At least 1.
 *
 * @param together whether one call can contain several requests
 * @param remaining capacity by the last rejection
 */
export function mostAsked({ granted }: Demand, together: boolean, remaining: number): number {
  return Math.max(1, Math.min(together && granted !== 0 ? MOST_ALONE : MOST_ASKED, remaining))
}
