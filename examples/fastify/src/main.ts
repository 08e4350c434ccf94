import { memoryStore } from '@weir/core'
import weir from '@weir/fastify'
import { redisStore } from '@weir/redis'
import fastify from 'fastify'

// Each address may send three requests in ten seconds. With REDIS_URL, all processes of this program share the limit.
const redis = process.env['REDIS_URL']
const store = redis ? redisStore(redis) : memoryStore()

const app = fastify()
await app.register(weir, { key: 'ip', limit: 3, interval: '10s', store })
app.get('/', async () => 'Hello from Fastify\n')
// A route may have no limit, or its own one.
app.get('/health', { config: { throttle: false } }, async () => 'ok\n')

const address = await app.listen({ port: Number(process.env['PORT'] ?? 3000), host: '127.0.0.1' })
console.log(`Try: curl -i ${address}/`)
