import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { limitedFetch } from '../../src/throttler/limited-fetch.ts'
import { createThrottler, type Throttler } from '../../src/throttler/throttler.ts'

async function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

function throttler(store = memoryStore()): Throttler {
  const made = createThrottler({ store, policies: [{ limit: 1_000, interval: '1m' }] })
  onTestFinished(() => made.close())
  return made
}

test('a 429 makes all nodes pause, and no request is made twice', async () => {
  let requests = 0
  const url = await listening((_, res) => {
    requests++
    if (requests === 1) res.writeHead(429, { 'Retry-After': '30' })
    res.end('x')
  })
  const store = memoryStore()
  const nodes = [throttler(store), throttler(store)] as const
  const [here, there] = nodes.map((node) => limitedFetch(node, { key: 'api', timeout: 200 }))
  for (const node of nodes) node.start()
  expect((await here?.(url))?.status).toBe(429)
  await expect.poll(() => nodes[1].peek('api', 0).allowed).toBe(false)
  await expect(there?.(url)).rejects.toMatchObject({ name: 'AcquireError', reason: 'timeout' })
  expect(requests).toBe(1)
  expect(nodes[1].peek('api', 0).retryAfterMs).toBeGreaterThan(25_000)
})

test('a pause is no longer than longestPause, and shortens none that is there', async () => {
  const after = ['3600', '1']
  const url = await listening((_, res) => {
    res.writeHead(429, { 'Retry-After': after.shift() })
    res.end()
  })
  const node = throttler()
  const get = limitedFetch(node, { longestPause: '20s', key: () => 'k' })
  await Promise.all([get(url), get(url)])
  expect(node.peek('k', 0).retryAfterMs).toBeGreaterThan(15_000)
  expect(node.peek('k', 0).retryAfterMs).toBeLessThanOrEqual(20_000)
})

test('the host and port are the key by default; a Request and its signal are understood', async () => {
  const url = await listening((_, res) => res.end('yes'))
  const node = throttler()
  const get = limitedFetch(node)
  expect(await (await get(new Request(url))).text()).toBe('yes')
  expect(await (await get(new URL(url))).text()).toBe('yes')
  const [usage] = await node.usage(new URL(url).host)
  expect(usage?.used).toBe(2)
  node.block(new URL(url).host, '1m')
  const controller = new AbortController()
  const waits = get(new Request(url, { signal: controller.signal }), {})
  setTimeout(() => controller.abort(), 20)
  await expect(waits).rejects.toMatchObject({ reason: expect.stringMatching(/aborted|timeout/) })
})

test.each([
  [{ key: 5 }, 'Option "key"'],
  [{ fetch: 5 }, 'Option "fetch"'],
  [{ longestPause: -1 }, 'Option "longestPause"'],
  [{ timeouts: 5 }, 'Did you mean "timeout"?'],
])('bad options are rejected: %j', (options, message) => {
  expect(() => limitedFetch(throttler(), options as never)).toThrow(message)
})

test('an answer that arrives after the throttler was closed is returned as it is', async () => {
  const node = throttler()
  const url = await listening(async (_, res) => {
    await node.close()
    res.writeHead(429, { 'Retry-After': '30' }).end('x')
  })
  node.start()
  const response = await limitedFetch(node, { key: 'api' })(url)
  expect([response.status, await response.text()]).toEqual([429, 'x'])
})
