import type { Outcome } from '../runs/run.ts'
import type { Settings } from '../settings/settings.ts'

/** What the page asks of its worker. */
export interface Question {
  readonly id: number
  readonly settings: Settings
}

/** What the worker answers. */
export type Answer = { readonly id: number; readonly outcome: Outcome } | { readonly id: number; readonly error: string }
