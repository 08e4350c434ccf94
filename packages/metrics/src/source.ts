import { type Throttler, WeirError } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { type Snapshot, snapshot } from '@weir/core/inspect'

/** A snapshot without its lists of keys, which no metric holds. */
export function readSource(source: Throttler<string, never>): Snapshot {
  return snapshot(source, { top: 0, blocked: 0 })
}

/**
 * @param names of the options that there are
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function checkArguments(throttler: Throttler<string, never>, options: object, names: readonly string[]): void {
  adapterOf(throttler)
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw new WeirError('WEIR_UNKNOWN_OPTION', `Unknown option "${unknown}". The metrics have: ${names.join(', ')}.`)
}
