/** The format of a figure. */
export type Unit = 'whole' | 'part' | 'short' | 'time'

/** Limiters side by side, with the same requests. */
export interface CurvesOutcome {
  readonly kind: 'curves'
  readonly title: string
  readonly unit: string
  /** Seconds, from left to right. */
  readonly x: { readonly label: string; readonly values: readonly number[] }
  readonly y: Unit
  /** Drawn as a line. */
  readonly limit: number
  readonly columns: readonly (readonly [label: string, unit: Unit])[]
  readonly rows: readonly {
    readonly name: string
    readonly curve: readonly number[]
    /** One figure for each column. */
    readonly figures: readonly number[]
  }[]
  /** Fingerprint of all decisions. */
  readonly digest: string
}
