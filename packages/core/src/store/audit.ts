import { WeirError } from '../report/errors.ts'
import { type Clock, keptAlive } from '../time/clock.ts'

/** The most entries that a store keeps. */
export const MOST_AUDITED = 1_000
/** The most UTF-16 units of an entry. */
export const LONGEST_AUDITED = 1_000
/** Milliseconds for which a store keeps an entry: 90 days. */
export const AUDITED_FOR = 7_776_000_000

/** Milliseconds until a store must have answered. */
const PATIENCE = 5_000

/** The log of manual actions in a store: blocks, unblocks and resets, each as one text. */
export interface AuditLog {
  /**
   * Adds an entry of at most 1,000 UTF-16 units. The store keeps the newest 1,000 entries, for 90 days. An entry that is sent twice may
   * appear twice.
   *
   * @throws (rejects) if the store does not answer
   */
  add(entry: string): Promise<void>
  /**
   * Returns the newest entries, the newest one first.
   *
   * @param most 1 to 1,000
   * @throws (rejects) if the store does not answer
   */
  list(most: number): Promise<readonly string[]>
}

/** The result of a promise, or a rejection after `PATIENCE`. Keeps the process alive meanwhile. */
export function answered<T>(clock: Clock, promise: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => {
    const timer = clock.setTimeout(
      () => reject(new WeirError('WEIR_STORE_TIMEOUT', `The store did not answer within ${PATIENCE} ms. Check its load and the network.`)),
      PATIENCE,
    )
    const stop = (): void => clock.clearTimeout(timer)
    promise.then(stop, stop)
  })
  return keptAlive(clock, Promise.race([promise, late]))
}

/**
 * A log of a store whose calls settle within 5 s, and keep the process alive until then.
 *
 * @param failed makes the error for users
 */
export function boundedLog({ add, list }: AuditLog, clock: Clock, failed: (error: unknown) => Error): AuditLog {
  const settled = <T>(call: Promise<T>): Promise<T> =>
    answered(clock, call).catch((error: unknown) => {
      throw failed(error)
    })
  return { add: (entry) => settled(add(entry)), list: (most) => settled(list(most)) }
}
