import type { Throttler } from '@weir/core'
import { WeirError } from '@weir/core'
import type { Registry } from 'prom-client'
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
import { Counter, Gauge, register as globalRegister, Histogram } from './npm-install-prom-client.ts'
import { checkArguments, readSource } from './source.ts'

/** Options of `prometheusMetrics`. */
export interface PrometheusOptions {
  /**
   * Registers the metrics in this registry of `prom-client`.
   *
   * @default the global registry
   * @see `@weir/core/docs/guides/observability.md`
   */
  readonly register?: Registry
  /**
   * Adds labels to all values, e.g. to distinguish several throttlers of a process. All throttlers of a registry need the same label
   * names.
   *
   * @default none
   */
  readonly labels?: Readonly<Record<string, string>>
}

type Labels = Readonly<Record<string, string>>
type Snapshot = ReturnType<typeof readSource>

/** The metrics of one registry. prom-client has one object for each name, so several throttlers share them. */
class Bundle {
  readonly labelNames: readonly string[]
  readonly #sources = new Map<Throttler<string, never>, Labels>()
  readonly #ends = new Map<Throttler<string, never>, () => void>()
  readonly #duration: Histogram
  readonly #batch: Histogram
  readonly #wait: Histogram
  /** Label sets of the histograms, by their JSON. */
  readonly #synced = new Map<string, Labels>()
  readonly #waited = new Map<string, Labels>()
  #snapshots: Map<Throttler<string, never>, Snapshot> | undefined

  constructor(register: Registry, labelNames: readonly string[]) {
    this.labelNames = labelNames
    const before = new Set(register.getMetricsAsArray())
    try {
      for (const metric of METRICS) if (metric.read !== undefined) this.#make(register, metric)
      this.#duration = this.#histogram(register, SYNC_DURATION, DURATION_BUCKETS)
      this.#batch = this.#histogram(register, SYNC_BATCH, BATCH_BUCKETS)
      this.#wait = this.#histogram(register, WAIT_DURATION, WAIT_BUCKETS)
    } catch (error) {
      // If they stayed, the next attempt would fail because the names are taken.
      for (const metric of register.getMetricsAsArray()) if (!before.has(metric)) register.removeSingleMetric(metric.name)
      throw error
    }
  }

  add(source: Throttler<string, never>, given: Labels): () => void {
    // Removes earlier listeners, because with two of them each sync and each wait would count twice.
    this.#ends.get(source)?.()
    const labels = Object.fromEntries(this.labelNames.map((name) => [name, given[name] as string]))
    this.#sources.set(source, labels)
    this.#keep(this.#synced, labels, [this.#duration, this.#batch], (own) => [own])
    const offWaited = source.on('waited', ({ policy, durationMs: time }) => {
      this.#keep(this.#waited, { ...labels, policy }, [this.#wait], (own, one) =>
        readSource(one).policies.map(({ name }) => ({ ...own, policy: name })),
      )
      this.#wait.observe({ ...labels, policy }, time / 1_000)
    })
    const off = source.on('sync', ({ durationMs: duration, entries }) => {
      this.#duration.observe(labels, duration / 1_000)
      this.#batch.observe(labels, entries)
    })
    const end = () => {
      off()
      offWaited()
      if (this.#ends.get(source) !== end) return
      this.#ends.delete(source)
      this.#sources.delete(source)
    }
    this.#ends.set(source, end)
    return end
  }

  /** Adds a label set of histograms. prom-client keeps every label set, so sets of removed policies and throttlers are deleted here. */
  #keep(
    held: Map<string, Labels>,
    labels: Labels,
    histograms: readonly Histogram[],
    living: (own: Labels, source: Throttler<string, never>) => readonly Labels[],
  ): void {
    const id = JSON.stringify(labels)
    if (held.has(id)) return
    const stay = new Set([...this.#sources].flatMap(([source, own]) => living(own, source)).map((one) => JSON.stringify(one)))
    for (const [old, one] of held) {
      if (stay.has(old)) continue
      held.delete(old)
      for (const histogram of histograms) histogram.remove(one)
    }
    held.set(id, labels)
  }

  #make(register: Registry, metric: Metric): void {
    const { prometheus: name, kind, description: help } = metric
    const labelNames = [...this.labelNames, ...metric.labels]
    const values = () => this.#values(metric)
    if (kind === 'counter') {
      new Counter({
        name,
        help,
        labelNames,
        registers: [register],
        // The throttler keeps the sums, so each scrape replaces the values in prom-client.
        collect() {
          this.reset()
          for (const { labels, value } of values()) this.inc(labels, value)
        },
      })
      return
    }
    new Gauge({
      name,
      help,
      labelNames,
      registers: [register],
      collect() {
        this.reset()
        const read = values()
        for (const { labels, value } of read) this.inc(labels, value)
        // In prom-client a metric without labels always has a value, so NaN stands for an absent one.
        if (read.length === 0 && labelNames.length === 0) this.set(Number.NaN)
      },
    })
  }

  #histogram(register: Registry, { prometheus: name, description: help, labels }: Metric, buckets: readonly number[]): Histogram {
    return new Histogram({ name, help, labelNames: [...this.labelNames, ...labels], buckets: [...buckets], registers: [register] })
  }

  #values({ read }: Metric): { labels: Labels; value: number }[] {
    const values: { labels: Labels; value: number }[] = []
    for (const [source, own] of this.#sources) {
      for (const { labels, value } of read?.(this.#snapshotOf(source)) ?? []) values.push({ labels: { ...own, ...labels }, value })
    }
    return values
  }

  /** A registry collects all of its metrics in one turn of the event loop, so one snapshot serves them. */
  #snapshotOf(source: Throttler<string, never>): Snapshot {
    if (this.#snapshots === undefined) {
      this.#snapshots = new Map()
      queueMicrotask(() => {
        this.#snapshots = undefined
      })
    }
    let snapshot = this.#snapshots.get(source)
    if (snapshot === undefined) this.#snapshots.set(source, (snapshot = readSource(source)))
    return snapshot
  }
}

const bundles = new WeakMap<Registry, Bundle>()

/**
 * Adds a throttler's metrics to a registry of `prom-client`. Each scrape reads them. Listeners feed the histograms, once for each sync with
 * the store and once for each request that has waited. If you add a throttler again, its new labels replace the earlier ones.
 *
 * @returns a function that removes the throttler
 * @throws WeirError `WEIR_INVALID_OPTION`, also if another throttler of the registry has other label names. `WEIR_UNKNOWN_OPTION`
 */
export function prometheusMetrics(throttler: Throttler<string, never>, options: PrometheusOptions = {}): () => void {
  checkArguments('prometheusMetrics', throttler, options, ['register', 'labels'])
  const { register = globalRegister, labels = {} } = options
  const names = Object.keys(labels).sort()
  const taken = names.find((name) => METRICS.some(({ labels: own }) => (own as readonly string[]).includes(name)))
  if (taken !== undefined)
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      `Option "labels" has the name "${taken}", which the metrics use themselves. Choose another name.`,
    )
  const made = bundles.get(register)
  // `clear` of a registry removes these metrics without an event.
  let bundle = register.getSingleMetric(SYNC_DURATION.prometheus) === undefined ? undefined : made
  if (bundle === undefined) bundles.set(register, (bundle = new Bundle(register, names)))
  if (bundle.labelNames.join() !== names.join()) {
    const others = bundle.labelNames.join(', ') || 'none'
    const what = `Option "labels" has the names ${names.join(', ') || 'none'}, but another throttler of this registry has ${others}`
    throw new WeirError('WEIR_INVALID_OPTION', `${what}. Use the same names, or another "register".`)
  }
  return bundle.add(throttler, labels)
}
