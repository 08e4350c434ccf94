import { type ClientRequest, request } from 'node:http'
import { expect, vi } from 'vitest'

/** Sends a request and ignores its response. */
export function open(port: number): ClientRequest {
  return request({ host: '127.0.0.1', port, agent: false })
    .on('error', () => {})
    .on('response', (response) => response.resume().on('error', () => {}))
    .end()
}

/** Closes a client's connection, and resolves once the server has closed the response and called the listeners of that event. */
export async function leave(client: ClientRequest, { closed }: { closed(): boolean }): Promise<void> {
  client.destroy()
  await vi.waitFor(() => expect(closed()).toBe(true), { timeout: 10_000, interval: 5 })
}
