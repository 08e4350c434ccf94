import type { Report } from './report.ts'

export interface BenchOptions {
  /** The number of rounds, each with new processes. */
  readonly rounds: number
  /** Uses smaller sizes, for a quick check. */
  readonly quick: boolean
  /** The folder of another checkout, already built, with which this one is compared. */
  readonly against?: string
  /** Names the contenders to compare. Default: all. */
  readonly only?: readonly string[]
}

/** Measures one subject. */
export type Bench = (options: BenchOptions) => Promise<readonly Report[]>
