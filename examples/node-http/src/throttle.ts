import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Throttler } from '@weir/core'
import { createGuard, nodeReader, type SetHeader, type ThrottleInput, upgradeRejection } from '@weir/core/adapter'

type Args = readonly [request: IncomingMessage, response: ServerResponse]
type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

const setHeader: SetHeader<ServerResponse> = (response, name, value) => void response.setHeader(name, value)

/** Throttles the requests and upgrade requests of a `node:http` server. */
export interface Throttle {
  readonly throttler: Throttler<string, IncomingMessage>
  /** Wraps a listener of `'request'`, so that it gets only allowed requests. */
  requests(listener: RequestListener): RequestListener
  /** Wraps a listener of `'upgrade'` in the same way. Both share the limits. */
  upgrades(listener: UpgradeListener): UpgradeListener
}

export function throttle(input: ThrottleInput<IncomingMessage, Args>): Throttle {
  const guard = createGuard<IncomingMessage, Args>(input, nodeReader)
  return {
    throttler: guard.throttler,
    requests: (listener) => async (request, response) => {
      const decision = await guard.check(request)
      if (decision === undefined) return listener(request, response)
      if (decision.allowed) {
        guard.writeHeaders(decision, response, setHeader)
        guard.watch(decision, response, [request, response])
        return listener(request, response)
      }
      const rejection = await guard.reject(request, decision)
      response.statusCode = rejection.status
      for (const [name, value] of Object.entries(rejection.headers)) response.setHeader(name, value)
      if ((await guard.handle(rejection, [request, response], response)) !== 'failed') return
      response.setHeader('Content-Type', rejection.type)
      response.end(rejection.body)
    },
    upgrades: (listener) => async (request, socket, head) => {
      // An error of a socket whose client has left must not end the process.
      const gone = () => socket.destroy()
      socket.on('error', gone)
      const decision = await guard.check(request)
      if (decision?.allowed === false) {
        socket.end(upgradeRejection(await guard.reject(request, decision)))
        return
      }
      socket.off('error', gone)
      listener(request, socket, head)
    },
  }
}
