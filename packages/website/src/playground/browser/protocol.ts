import type { Outcome } from '../runs/run.ts'
import type { Settings } from '../settings/settings.ts'

/** A message from the page to its worker. */
export interface Question {
  readonly id: number
  readonly settings: Settings
  readonly logs: readonly Blob[]
}

/** The worker's answer. */
export type Answer = { readonly id: number; readonly outcome: Outcome } | { readonly id: number; readonly error: string }
