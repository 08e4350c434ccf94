import type { AddressInfo } from 'node:net'
import { dashboard } from '@weir/dashboard/fastify'
import weir from '@weir/fastify'
import fastify from 'fastify'
import { access, exampleThrottler, port, say } from './throttler.ts'

const throttler = exampleThrottler()

const app = fastify()
// The dashboard's own routes are not limited.
await app.register(weir, { throttler })
await app.register(dashboard, { prefix: '/weir', throttler, ...access })
app.get('/', () => 'Hello from Fastify\n')

await app.listen({ port, host: '127.0.0.1' })
say((app.server.address() as AddressInfo).port)
