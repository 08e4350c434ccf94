import type { Ordinal } from '../time/intervals.ts'

/** Requests of one key that wait for units, in their order. Often it is a single one. */
export interface ReserveRequest {
  readonly slot: number
  /** The user's key. */
  readonly key: string
  /** The cost of each request, in units. */
  readonly costs: readonly number[]
  /** The sum of the costs. */
  readonly units: number
  /** The limit that the requests came with. Undefined for the policy's own. Later requests may change the key's limit. */
  readonly given: number | undefined
  /** Milliseconds that the store has for its reply. Then the process decides without it. */
  readonly storeTimeout: number
  /** If units are counted ahead: the most of them in the key's bucket, these included. Default: any number. */
  readonly most?: number
}

/** The result for requests that waited. */
export interface Reserved {
  /** The number of requests whose units are counted now: the first ones. 0 if the key has no units for them. */
  readonly count: number
  /** The key's remaining units, negative if some were counted ahead. */
  readonly left: number
  /** Milliseconds until all units of the key are back. */
  readonly resetAfterMs: number
  /** The interval in which they were counted. Default: by the time at which the requests may go. */
  readonly ordinal?: Ordinal
}

/** Reserves units of the store for requests that this process alone can't decide. */
export interface StoreReservations {
  /**
   * Whether the process takes quota ahead, and each request waits for units of it. Otherwise the requests of a key are sent to the store
   * together, and the store counts all of them or none.
   */
  readonly leased: boolean
  /** Whether the store must decide such a request now. */
  needsStore(slot: number, cost: number, now: number): boolean
  /** Requests units, only after `needsStore` was true. They are counted on arrival. Resolves with undefined if no reply came in time. */
  reserve(request: ReserveRequest, now: number): Promise<Reserved | undefined>
  /**
   * Ends the wait of a request because its time is over, unless it is decided: no units are counted for it. Absent if the requests end by
   * themselves.
   */
  abandon?(request: ReserveRequest): void
  /**
   * Units in the key's bucket by confirmed counts, even beyond its capacity, if units are counted ahead: then the store decides when each
   * request goes. Otherwise undefined.
   */
  levelAhead?(slot: number, now: number): number | undefined
  /** Whether some of these units are being returned. Then the next requests wait until `freed` reports it to their site. */
  isReturning?(slot: number): boolean
  /** Whether the store's last reply is still valid. Other processes may have cancelled reservations since. Absent if it always is. */
  isFresh?(slot: number, now: number): boolean
  /** Units of a key that this process took ahead and has not used, those of the next interval included. */
  heldOf?(slot: number): number
}
