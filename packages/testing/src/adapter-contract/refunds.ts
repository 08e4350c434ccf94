import assert from 'node:assert/strict'
import { type AdapterCase, type AdapterClient, contextOf, eventually } from './context.ts'

/** The remaining quota of the key that all requests share. */
async function remaining(client: AdapterClient): Promise<number> {
  const decision = client.throttlers[0]?.peek('all')
  return decision?.remaining ?? -1
}

/** Units that requests get back after their response. */
export const refundCases: readonly AdapterCase[] = [
  {
    title: 'gives failed requests back',
    async run(context) {
      const client = await context.start({ ...context.limit(10), key: 'all', skipFailedRequests: true })
      assert.deepEqual(await client.statuses(['/status/500', '/status/404', '/status/200']), [500, 404, 200])
      await eventually(async () => (await remaining(client)) === 9, 'only the good request counts')
      assert.equal(contextOf(await client.send('/context')).remaining, 8)
    },
  },
  {
    title: 'gives successful requests back',
    async run(context) {
      const client = await context.start({ ...context.limit(10), key: 'all', skipSuccessfulRequests: true })
      await client.statuses(['/status/500', '/status/404', '/status/200'])
      await eventually(async () => (await remaining(client)) === 8, 'only the bad requests count')
    },
  },
  {
    title: 'asks requestWasSuccessful what counts as success',
    async run(context) {
      const client = await context.start({
        ...context.limit(10),
        key: 'all',
        skipFailedRequests: true,
        requestWasSuccessful: (...args: unknown[]) => context.adapter.status(args) === 404,
      })
      await client.statuses(['/status/404', '/status/200', '/status/500'])
      await eventually(async () => (await remaining(client)) === 9, 'only the request with 404 counts')
    },
  },
  {
    title: 'takes a response that was cut off as failed',
    async run(context) {
      const client = await context.start({ ...context.limit(10), key: 'all', skipFailedRequests: true })
      await new Promise<void>((resolve, reject) => {
        const request = client.open('/slow')
        request.on('response', (response) => {
          response.on('error', () => {})
          response.once('data', () => {
            request.destroy()
            resolve()
          })
        })
        request.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNRESET' ? resolve() : reject(error)))
        request.end()
      })
      await eventually(async () => (await remaining(client)) === 10, 'the broken request is refunded')
    },
  },
  {
    title: 'refunds nothing unless asked to',
    async run(context) {
      const client = await context.start({ ...context.limit(10), key: 'all' })
      await client.statuses(['/status/500', '/status/404', '/status/200'])
      assert.equal(contextOf(await client.send('/context')).remaining, 6)
    },
  },
]
