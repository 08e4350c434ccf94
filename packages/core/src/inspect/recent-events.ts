import type { Emitter, EventName, ThrottlerEvents } from '../report/events.ts'

/** A change of state of a process. Fields that its kind does not have are undefined. */
export interface ProcessEvent {
  readonly name: (typeof RECORDED)[number]
  /** Milliseconds since it happened. */
  readonly ageMs: number
  readonly policy?: string | undefined
  readonly key?: string | undefined
  /** The cause of a block or of its end. */
  readonly cause?: string | undefined
  /** Milliseconds of a block or of an outage of the store. Undefined for a block without an end. */
  readonly durationMs?: number | undefined
  /** The number of live processes, or the version of rules. */
  readonly count?: number | undefined
}

/** The names of events that are recorded. */
export const RECORDED = ['blocked', 'unblocked', 'storeUp', 'overflow', 'nodes', 'rulesApplied'] as const
/** The most events that a process keeps, of blocks and of all others. They are kept apart, so that blocks can't push out the others. */
const MOST = 10

interface Recorded extends Omit<ProcessEvent, 'ageMs'> {
  readonly at: number
}

const recorders = new WeakMap<Emitter, { readonly blocks: Recorded[]; readonly others: Recorded[] }>()

/**
 * The newest events of a throttler since the first call, newest first.
 *
 * @param now on the monotonic clock of `clock`
 */
export function recentEvents(emitter: Emitter, clock: { monotonic(): number }, now: number): ProcessEvent[] {
  let kept = recorders.get(emitter)
  if (kept === undefined) {
    kept = { blocks: [], others: [] }
    recorders.set(emitter, kept)
    const { blocks, others } = kept
    emitter.record(RECORDED, (name, event) => {
      const list = name === 'blocked' || name === 'unblocked' ? blocks : others
      list.unshift({ ...summaryOf(name as ProcessEvent['name'], event), at: clock.monotonic() })
      list.length = Math.min(list.length, MOST)
    })
  }
  return [...kept.blocks, ...kept.others].sort((a, b) => b.at - a.at).map(({ at, ...event }) => ({ ...event, ageMs: now - at }))
}

function summaryOf(name: ProcessEvent['name'], event: ThrottlerEvents[EventName]): Omit<ProcessEvent, 'ageMs'> {
  const { policy, key, cause, durationMs, nodes, version, maxKeys } = event as Partial<
    ThrottlerEvents['blocked'] & ThrottlerEvents['nodes'] & ThrottlerEvents['rulesApplied'] & ThrottlerEvents['overflow']
  >
  // JSON has no infinite numbers.
  const finite = durationMs === Number.POSITIVE_INFINITY ? undefined : durationMs
  return { name, policy, key, cause, durationMs: finite, count: nodes ?? version ?? maxKeys }
}
