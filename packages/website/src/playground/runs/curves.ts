/** How a figure is written. */
export type Unit = 'whole' | 'part' | 'short' | 'time'

/** Limiters side by side, on the same requests. */
export interface CurvesOutcome {
  readonly kind: 'curves'
  readonly title: string
  readonly unit: string
  /** Seconds, from the left to the right. */
  readonly x: { readonly label: string; readonly values: readonly number[] }
  readonly y: Unit
  /** Drawn as a line. */
  readonly limit: number
  readonly columns: readonly (readonly [label: string, unit: Unit])[]
  readonly rows: readonly {
    readonly name: string
    readonly curve: readonly number[]
    /** One for each column. */
    readonly figures: readonly number[]
  }[]
  /** Fingerprint of all decisions. */
  readonly digest: string
}
