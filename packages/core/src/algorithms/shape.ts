/** The coordinations by which processes count together. Each has its own meter, and the store has the counts of all. */
export type SharedCoordination = 'background' | 'periodic' | 'leased'

/** The members of all shapes. */
interface AnyShape {
  /** The coordinations that have a meter. */
  readonly coordinations: readonly SharedCoordination[]
}

/** Units of an interval, which starts again from zero. */
interface WindowShape extends AnyShape {
  readonly kind: 'window'
}

/** Units of the parts of an interval, which expire one by one. */
export interface SlidingShape extends AnyShape {
  readonly kind: 'sliding-window'
  /** Parts of the interval by which a full key opens. */
  readonly subWindows: number
  /** The part of the limit that must be free before a full key opens again. */
  readonly reopenAt: number
}

/** Units of an interval and of the one before. */
interface TwoWindowsShape extends AnyShape {
  readonly kind: 'two-windows'
}

/** Units that drain at a pace. */
export interface BucketShape extends AnyShape {
  readonly kind: 'bucket'
  /** Units above the capacity that the level remembers at most. Default: all. */
  readonly maxDebt?: number | undefined
  /** Rejects some requests at random while too many come. */
  readonly earlyDrop?: boolean
}

/** Units in use, until their requests have ended. */
interface SlotsShape extends AnyShape {
  readonly kind: 'slots'
}

/** The counts that processes share for a key. The room `counting` selects the meter by it. */
export type SharedShape = WindowShape | SlidingShape | TwoWindowsShape | BucketShape | SlotsShape
