// packages/acceptance runs this in empty projects of every kind, from the packed tarball. In virtual time a limit of 2 gets three
// requests, and a simulated cluster stays at its limit.
import { createThrottler } from '@weir/core'
import { manualClock, poisson, simulate } from '@weir/testing'

async function main(): Promise<void> {
  const clock = manualClock()
  const throttler = createThrottler({ policies: [{ limit: 2, interval: '10s' }], clock })
  const outcomes: string[] = [1, 2, 3].map(() => (throttler.check('ann').allowed ? 'allowed' : 'rejected'))
  await clock.advance(10_000)
  if (!throttler.check('ann').allowed) outcomes.push('rejected for ever')
  await throttler.close()

  const result = await simulate({ policy: { limit: 100, interval: '1s' }, nodes: 3, intervals: 10, load: poisson(3), seed: 1 })
  if (result.overshoot.p95 > 0.1) outcomes.push(`overshoot of ${result.overshoot.p95}`)
  console.log(outcomes.join(' '))
}

void main()
