import type { Report } from './report.ts'

export interface BenchOptions {
  /** Rounds of fresh processes. */
  readonly rounds: number
  /** Smaller sizes, for a quick look. */
  readonly quick: boolean
  /** The folder of another checkout, built, that this one is compared with. */
  readonly against?: string
  /** Only these of what it compares, by name. */
  readonly only?: readonly string[]
}

/** Measures one subject. */
export type Bench = (options: BenchOptions) => Promise<readonly Report[]>
