import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serveParent, startChild, tell } from './child.ts'
import { KEEP_ALIVE } from './front.ts'

/** The service behind the gateways. It answers every request with one line. */
await startChild(async () => {
  const server = createServer((request, response) => {
    request.resume()
    response.setHeader('content-type', 'text/plain; charset=utf-8')
    response.end('Here is your answer.\n')
  })
  server.keepAliveTimeout = KEEP_ALIVE
  serveParent(() => server.closeAllConnections())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  tell({ type: 'demo:ready', port: (server.address() as AddressInfo).port, about: `node:http ${process.version}` })
})
