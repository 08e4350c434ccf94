import { FIRST_REQUEST, FIXED_WINDOW, type ServerAlgorithm } from './algorithms.ts'

/** What a server can decide by, by the name of the step. */
export const ALGORITHMS: Readonly<Record<string, ServerAlgorithm>> = {
  'fixed-window': FIXED_WINDOW,
  'fixed-window-first-request': FIRST_REQUEST,
}
