import { METRICS } from '@weir/metrics'

/** The metrics of each table, by the name of its mark. */
export const METRIC_TABLES: Readonly<Record<string, readonly string[]>> = {
  'metrics-requests': ['weir.requests', 'weir.allowed', 'weir.rejected', 'weir.blocks', 'weir.keys.blocked', 'weir.in_flight'],
  'metrics-reservations': ['weir.reservations.open', 'weir.reserved.units', 'weir.reservations'],
  'metrics-waiting': ['weir.waiting', 'weir.waiting.longest', 'weir.wait.duration', 'weir.wait.failures'],
  'metrics-policies': [
    'weir.keys.tracked',
    'weir.keys.max',
    'weir.keys.overflowing',
    'weir.policy.limit',
    'weir.policy.capacity',
    'weir.policy.interval',
    'weir.rules.version',
    'weir.rules.rejected',
    'weir.rules.source_down',
  ],
  'metrics-accuracy': [
    'weir.overshoot',
    'weir.possible.overshoot',
    'weir.unsynced.units',
    'weir.unsynced.age',
    'weir.leased.units',
    'weir.debt',
    'weir.share',
  ],
  'metrics-store': [
    'weir.nodes',
    'weir.storeDown',
    'weir.sync.failures',
    'weir.sync.since_success',
    'weir.sync.duration',
    'weir.sync.batch.size',
    'weir.exchanges',
    'weir.clock.offset',
    'weir.clock.uncertainty',
  ],
}

/** The rows of a table with its head. */
export function metricRows(names: readonly string[]): string[][] {
  const rows = names.map((name) => {
    const metric = METRICS.find((one) => one.name === name)
    if (metric === undefined) throw new Error(`There is no metric "${name}"`)
    const unit = metric.unit.startsWith('{') ? `\`${metric.unit}\`` : metric.unit
    return [`\`${metric.prometheus}\``, `\`${name}\``, metric.kind, unit, metric.labels.join(', '), metric.description]
  })
  return [['Prometheus', 'OpenTelemetry', 'kind', 'unit', 'labels', 'meaning'], ...rows]
}
