import { WeirError } from '@weir/core'

/** Why Redis could not be used, by whatever the client failed with. */
export function asWeirError(error: unknown): WeirError {
  if (error instanceof WeirError) return error
  const message = error instanceof Error ? error.message : String(error)
  return new WeirError('WEIR_STORE_UNAVAILABLE', `Redis can't be used now: ${message}`, { cause: error })
}
