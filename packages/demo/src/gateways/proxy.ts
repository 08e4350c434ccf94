import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { handedOn } from '../processes/timing.ts'

/**
 * Forwards a request to the backend, and the answer to the client. It is as small as a proxy can be. Build upon the one in
 * `examples/gateway` instead.
 */
export function createProxy(backendPort: number): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  return (incoming, outgoing) => {
    handedOn(incoming)
    const { method, url: path } = incoming
    const headers = { ...incoming.headers, host: `127.0.0.1:${backendPort}` }
    const forwarded = request({ host: '127.0.0.1', port: backendPort, agent, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, withoutHopByHop(answer))
      answer.pipe(outgoing)
    })
    forwarded.once('error', () => {
      if (!outgoing.headersSent) outgoing.writeHead(502)
      outgoing.end()
    })
    incoming.pipe(forwarded)
  }
}

/** The answer's headers, without headers of the connection to the backend. */
function withoutHopByHop({ headers }: IncomingMessage): IncomingMessage['headers'] {
  const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...rest } = headers
  return rest
}
