import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createThrottler, memoryStore, slidingWindow, systemClock, type Throttler } from '@weir/core'
import { Hub } from '@weir/core/memory'
import { onTestFinished } from 'vitest'

/** A throttler with two policies; with a hub it is a node of a cluster. */
export function throttlerFor(hub: Hub = new Hub(systemClock)): Throttler {
  const throttler = createThrottler({
    store: memoryStore(hub),
    policies: [
      { name: 'user', limit: 100, interval: '1h', cooldown: '10m' },
      { name: 'tenant', limit: 1_000, interval: '1h', algorithm: slidingWindow() },
    ],
  })
  onTestFinished(() => throttler.close())
  return throttler.start()
}

/** Serves until the test is over; returns the address, without a slash at its end. */
export async function serve(listener: RequestListener, port = 0): Promise<{ url: string; port: number; server: Server }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const bound = (server.address() as AddressInfo).port
  return { url: `http://127.0.0.1:${bound}`, port: bound, server }
}

/** An action as the page sends it. */
export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Weir-Dashboard': '1', ...headers },
    body: JSON.stringify(body),
  })
}
