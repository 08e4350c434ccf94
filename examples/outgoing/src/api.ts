import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A foreign API. It allows a number of calls in any second, counted exactly, and answers further calls with 429. */
export interface Api {
  readonly url: string
  readonly answered: number
  readonly rejected: number
  /** The most calls that arrived within any second. */
  readonly busiest: number
  close(): void
}

export async function startApi(perSecond: number): Promise<Api> {
  const calls: number[] = []
  let answered = 0
  let rejected = 0
  let busiest = 0
  const server = createServer((_request, response) => {
    const now = performance.now()
    while (calls.length > 0 && now - (calls[0] as number) >= 1000) calls.shift()
    busiest = Math.max(busiest, calls.length + 1)
    if (calls.length >= perSecond) {
      rejected++
      response.writeHead(429, { 'Retry-After': '1' }).end()
      return
    }
    calls.push(now)
    answered++
    response.end('done')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    get answered() {
      return answered
    },
    get rejected() {
      return rejected
    },
    get busiest() {
      return busiest
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
