import type { Meter, Observable } from '@opentelemetry/api'
import type { Throttler } from '@weir/core'
import {
  BATCH_BUCKETS,
  DURATION_BUCKETS,
  METRICS,
  type Metric,
  SYNC_BATCH,
  SYNC_DURATION,
  WAIT_BUCKETS,
  WAIT_DURATION,
} from './catalogue.ts'
import { metrics } from './npm-install-opentelemetry-api.ts'
import { checkArguments, readSource } from './source.ts'

/** Options of `openTelemetryMetrics`. */
export interface OpenTelemetryOptions {
  /**
   * Creates the metrics with this meter.
   *
   * @default the meter `@weir/metrics` of the global meter provider
   * @see `@weir/core/docs/guides/observability.md`
   */
  readonly meter?: Meter
  /**
   * Adds attributes to all values, e.g. to distinguish several throttlers of a process.
   *
   * @default none
   */
  readonly attributes?: Readonly<Record<string, string>>
}

/**
 * Reports a throttler's metrics to OpenTelemetry. The SDK reads them when it collects. Listeners feed the histograms, once for each sync
 * with
 * the store and once for each request that has waited.
 *
 * @returns a function that ends the reports
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * const end = openTelemetryMetrics(throttler, { attributes: { 'service.part': 'gateway' } })
 */
export function openTelemetryMetrics(throttler: Throttler<string, never>, options: OpenTelemetryOptions = {}): () => void {
  checkArguments('openTelemetryMetrics', throttler, options, ['meter', 'attributes'])
  const { attributes = {}, meter = metrics.getMeter('@weir/metrics') } = options
  const read: { readonly metric: Metric; readonly instrument: Observable }[] = METRICS.flatMap((metric) =>
    metric.read === undefined ? [] : [{ metric, instrument: observable(meter, metric) }],
  )
  const instruments = read.map(({ instrument }) => instrument)
  const collect: Parameters<Meter['addBatchObservableCallback']>[0] = (result) => {
    const snapshot = readSource(throttler)
    for (const { metric, instrument } of read) {
      for (const { labels, value } of metric.read?.(snapshot) ?? []) result.observe(instrument, value, { ...attributes, ...named(labels) })
    }
  }
  const duration = histogram(meter, SYNC_DURATION, DURATION_BUCKETS)
  const batch = histogram(meter, SYNC_BATCH, BATCH_BUCKETS)
  const wait = histogram(meter, WAIT_DURATION, WAIT_BUCKETS)
  // Registered last, after everything that can throw. Otherwise a second attempt would report twice.
  meter.addBatchObservableCallback(collect, instruments)
  const offWaited = throttler.on('waited', ({ policy, durationMs: time }) =>
    wait.record(time / 1_000, { ...attributes, ...named({ policy }) }),
  )
  const off = throttler.on('sync', (event) => {
    duration.record(event.durationMs / 1_000, attributes)
    batch.record(event.entries, attributes)
  })
  return () => {
    off()
    offWaited()
    meter.removeBatchObservableCallback(collect, instruments)
  }
}

function observable(meter: Meter, { name, kind, unit, description }: Metric): Observable {
  if (kind === 'counter') return meter.createObservableCounter(name, { unit, description })
  return kind === 'updown'
    ? meter.createObservableUpDownCounter(name, { unit, description })
    : meter.createObservableGauge(name, { unit, description })
}

function histogram(meter: Meter, { name, unit, description }: Metric, buckets: readonly number[]): ReturnType<Meter['createHistogram']> {
  return meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...buckets] } })
}

/** Puts attributes into the namespace of their metric, as the semantic conventions require. */
function named(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [`weir.${name}`, value]))
}
