import { createThrottler, leakyBucket, limitedFetch } from '@weir/core'
import { ipcStore } from '@weir/core/ipc'
import { redisStore } from '@weir/redis'

const [url = '', seconds = '5'] = process.argv.slice(2)
const redis = process.env['REDIS_URL']

// All workers together send one call every 50 ms. The store schedules each call.
const throttler = createThrottler({
  store: redis ? redisStore(redis) : ipcStore(),
  policies: [{ name: 'api', limit: 20, interval: '1s', algorithm: leakyBucket(), coordination: 'central', storeTimeout: '1s' }],
})
const call = limitedFetch(throttler, { timeout: '20s' })

const end = Date.now() + Number(seconds) * 1000
let calls = 0
let rejected = 0
// Each worker is always busy: five loops send one call after the other.
async function work(): Promise<void> {
  while (Date.now() < end) {
    const { status } = await call(url)
    calls++
    if (status === 429) rejected++
  }
}
await Promise.all(Array.from({ length: 5 }, work))
process.send?.({ calls, rejected })
await throttler.close()
process.disconnect?.()
