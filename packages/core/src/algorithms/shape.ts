/** The coordinations by which processes count together: each has a meter of its own, and the store has the counts of all. */
export type SharedCoordination = 'background' | 'periodic' | 'leased'

/** What all shapes have. */
interface AnyShape {
  /** The coordinations that there are meters for. */
  readonly coordinations: readonly SharedCoordination[]
}

/** Units of an interval, which begins again from zero. */
interface WindowShape extends AnyShape {
  readonly kind: 'window'
}

/** Units of the parts of an interval, which leave one by one. */
export interface SlidingShape extends AnyShape {
  readonly kind: 'sliding-window'
  /** Parts of the interval that a full key opens by. */
  readonly subWindows: number
  /** The part of the limit that must be free before a full key opens again. */
  readonly reopenAt: number
}

/** Units of an interval and of the one before. */
interface TwoWindowsShape extends AnyShape {
  readonly kind: 'two-windows'
}

/** Units that run out at a pace. */
export interface BucketShape extends AnyShape {
  readonly kind: 'bucket'
  /** Units beyond what it holds that its level remembers at most. Default: all. */
  readonly maxDebt?: number | undefined
  /** Requests are let in by chance while too many come. */
  readonly earlyDrop?: boolean
}

/** Units in use, until their requests have ended. */
interface SlotsShape extends AnyShape {
  readonly kind: 'slots'
}

/** What processes that count together keep of a key. The room `counting` finds the meter by it. */
export type SharedShape = WindowShape | SlidingShape | TwoWindowsShape | BucketShape | SlotsShape
