import { redisStore } from '@weir/redis'
import { forwardedAddress, memoryStore, throttle } from '@weir/web'

// Each address may create ten things per hour. With REDIS_URL, all processes of this application share the limit.
const redis = process.env['REDIS_URL']
const store = redis ? redisStore(redis) : memoryStore()
const limit = throttle({ name: 'create', key: 'ip', limit: 10, interval: '1h', store, address: forwardedAddress(1) })

export const POST = limit(async (request) => {
  return Response.json({ created: await request.text() }, { status: 201 })
})
