import { slidingWindow } from '@weir/express'
import axios from 'axios'
import axiosRetry from 'axios-retry'
import got from 'got'
import ky from 'ky'
import { Agent, interceptors, request } from 'undici'
import { describe, test } from 'vitest'
import { throttledServer } from './throttled-server.ts'

const retrying = axios.create()
// Only the condition is not a default, because axios-retry repeats no requests with a status below 500.
axiosRetry(retrying, { retries: 2, retryDelay: axiosRetry.exponentialDelay, retryCondition: ({ response }) => response?.status === 429 })

const agent = new Agent().compose(interceptors.retry({ maxRetries: 2 }))

/** Clients with their own way to retry and otherwise default settings. */
const CLIENTS: Record<string, (url: string) => Promise<string>> = {
  got: (url) => got(url).text(),
  ky: (url) => ky(url).text(),
  'axios with axios-retry': async (url) => (await retrying.get<string>(url)).data,
  'the retry interceptor of undici': async (url) => (await request(url, { dispatcher: agent })).body.text(),
}

describe.each([
  ['a limit in a fixed window', {}],
  ['a limit in a sliding window', { algorithm: slidingWindow() }],
  ['a cooldown', { cooldown: '2s' }],
] as const)('%s', (_name, options) => {
  // Concurrent, because the tests spend nearly all of their time waiting.
  test.concurrent.for(Object.entries(CLIENTS))(
    '%s waits as it is told, and is let in',
    async ([_client, get], { expect, onTestFinished }) => {
      const server = await throttledServer(options)
      onTestFinished(() => server.close())
      const rejections = () => server.answered.filter(({ status }) => status === 429).length
      // An interval may end between any two requests.
      for (let i = 0; i < 20 && rejections() === 0; i++) expect(await get(server.url)).toBe('hello')
      expect(rejections()).toBe(1)
      const place = server.answered.findIndex(({ status }) => status === 429)
      const [rejected, next] = server.answered.slice(place)
      expect(next?.status).toBe(200)
      // Timers may fire a millisecond early, and the client reads the response a little later than the server sent it.
      expect((next?.at ?? 0) - (rejected?.at ?? 0)).toBeGreaterThanOrEqual((rejected?.retryAfterSeconds ?? 0) * 1000 - 5)
    },
  )
})
