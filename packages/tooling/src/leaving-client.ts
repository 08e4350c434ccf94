import { type ClientRequest, request } from 'node:http'
import { expect, vi } from 'vitest'

/** A request whose answer doesn't matter. */
export function open(port: number): ClientRequest {
  return request({ host: '127.0.0.1', port, agent: false })
    .on('error', () => {})
    .on('response', (response) => response.resume().on('error', () => {}))
    .end()
}

/** The first client of a server leaves; resolves once its response is closed, and whatever listens to that has been called. */
export async function leave(client: ClientRequest, { closed }: { closed(): boolean }): Promise<void> {
  client.destroy()
  await vi.waitFor(() => expect(closed()).toBe(true), { timeout: 10_000, interval: 5 })
}
