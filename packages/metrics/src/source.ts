import type { Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { checkOptions, type Snapshot, snapshot } from '@weir/core/inspect'

/** A snapshot without lists of keys, because no metric needs them. */
export function readSource(source: Throttler<string, never>): Snapshot {
  return snapshot(source, { top: 0, blocked: 0 })
}

/**
 * @param of name of the function, for errors
 * @param names the allowed options
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function checkArguments(of: string, throttler: Throttler<string, never>, options: object, names: readonly string[]): void {
  adapterOf(throttler)
  checkOptions(of, options, names, `options such as { ${names.join(', ')} }`)
}
