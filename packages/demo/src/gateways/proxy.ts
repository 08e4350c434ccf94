import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { handedOn } from '../processes/timing.ts'

/**
 * Hands a request on to the backend and its answer back. As small as a proxy can be; `examples/gateway` has one to
 * build upon.
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

/** Headers that are about the connection to the backend, not about the answer. */
function withoutHopByHop({ headers }: IncomingMessage): IncomingMessage['headers'] {
  const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...rest } = headers
  return rest
}
