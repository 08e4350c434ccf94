import { serve } from '@hono/node-server'
import { memoryStore } from '@weir/core'
import { Hono } from 'hono'
import { throttle } from './throttle.ts'

const app = new Hono()
app.use(throttle({ key: 'ip', limit: 3, interval: '10s', store: memoryStore() }))
app.get('/', (c) => c.text('Hello from Hono\n'))

serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env['PORT'] ?? 3000) }, ({ port }) => {
  console.log(`Try: curl -i http://127.0.0.1:${port}/`)
})
