import type { RequestListener } from 'node:http'
import type { Throttler } from '@weir/core'
import type { Adapter } from './protocol.ts'

/** A hello-world service in each framework. Each process loads only its own. */
export async function appOf(adapter: Adapter, throttler: Throttler): Promise<RequestListener> {
  return await APPS[adapter](throttler)
}

const APPS: Readonly<Record<Adapter, (throttler: Throttler) => Promise<RequestListener>>> = {
  async express(throttler) {
    const [{ default: express }, { throttle }] = await Promise.all([import('express'), import('@weir/express')])
    const app = express()
    app.use(throttle(throttler))
    app.use((_request, response) => void response.send('hello'))
    return app
  },
  async fastify(throttler) {
    const [{ default: fastify }, { default: weir }] = await Promise.all([import('fastify'), import('@weir/fastify')])
    const app = fastify()
    await app.register(weir, { throttler })
    app.get('/', async () => 'hello')
    await app.ready()
    return app.routing
  },
  async koa(throttler) {
    const [{ default: Koa }, { throttle }] = await Promise.all([import('koa'), import('@weir/koa')])
    const app = new Koa()
    app.use(throttle(throttler))
    app.use((context) => {
      context.body = 'hello'
    })
    const handle = app.callback()
    return (request, response) => void handle(request, response)
  },
}
