// Runs from the packed tarball, in the empty projects of packages/acceptance. Sends three requests to a limit of 2, and checks that both
// kinds of metrics count them.
import { metrics } from '@opentelemetry/api'
import { createThrottler, memoryStore } from '@weir/core'
import { METRICS } from '@weir/metrics'
import { openTelemetryMetrics } from '@weir/metrics/opentelemetry'
import { prometheusMetrics } from '@weir/metrics/prometheus'
import { Registry } from 'prom-client'

async function main(): Promise<void> {
  const throttler = createThrottler({ policies: [{ name: 'user', limit: 2, interval: '1h' }], store: memoryStore() })
  const register = new Registry()
  prometheusMetrics(throttler, { register })
  const stop = openTelemetryMetrics(throttler, { meter: metrics.getMeter('packed') })
  for (let request = 0; request < 3; request++) throttler.check('ann')
  const text = await register.metrics()
  const count = (start: string): number =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(start))
        ?.split(' ')
        .at(-1),
    )
  const outcomes = [
    ...Array(count('weir_allowed_units_total{')).fill('allowed'),
    ...Array(count('weir_rejected_requests_total{')).fill('rejected'),
  ]
  console.log(METRICS.every(({ prometheus }) => text.includes(prometheus)) ? outcomes.join(' ') : 'a metric is missing')
  stop()
  await throttler.close()
}

void main()
