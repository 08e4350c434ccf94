import { type Throttler, WeirError } from '@weir/core'
import { type Snapshot, snapshot } from '@weir/core/inspect'

/** What is needed of a throttler: one of any policies and requests will do. */
export type MetricsSource = Pick<Throttler, 'on' | 'inspected'>

/** A snapshot without its lists of keys, which no metric holds. */
export function readSource(source: MetricsSource): Snapshot {
  return snapshot(source, { top: 0, blocked: 0 })
}

/**
 * @param names of the options that there are
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function checkArguments(throttler: unknown, options: object, names: readonly string[]): void {
  const { on } = (throttler ?? {}) as Partial<MetricsSource>
  if (typeof on !== 'function' || !('inspected' in (throttler as object)))
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      'Metrics need a throttler: what createThrottler() returned, or the property "throttler" of a middleware.',
    )
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw new WeirError('WEIR_UNKNOWN_OPTION', `Unknown option "${unknown}". The metrics have: ${names.join(', ')}.`)
}
