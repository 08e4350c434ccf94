import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** The answer to a request: a response, or the bare socket of an upgrade. */
export type Answering = ServerResponse | Http2ServerResponse | Duplex

/** Functions that wait for the end of a connection, by its socket. All pipelined requests share one listener. */
const waiting = new WeakMap<NodeJS.EventEmitter, Set<() => void>>()

/**
 * Calls a function once, as soon as an answer has been sent or its client has disconnected. If either has happened already, it calls the
 * function immediately.
 *
 * @returns a function that ends the wait
 */
export function whenEnded(answering: Answering, then: () => void): () => void {
  const { destroyed, stream } = answering as Partial<Http2ServerResponse & Duplex>
  // A response that waits for earlier ones gets no event when its connection closes, so its socket is watched.
  const queue = queuedAt(answering)
  if (destroyed === true || stream?.destroyed === true || queue?.destroyed === true) {
    then()
    return () => {}
  }
  const ended = (): void => {
    leave()
    then()
  }
  const leave = (): void => {
    answering.off('close', ended)
    forget?.()
  }
  // The listener removes itself, so it does not need the wrapper that `once` makes.
  answering.on('close', ended)
  const forget = queue === undefined ? undefined : onceClosed(queue, ended)
  return leave
}

/** The socket of a response to a pipelined request, while earlier responses are being sent. */
function queuedAt(answering: Answering): Socket | undefined {
  const { socket, req } = answering as { socket?: unknown; req?: IncomingMessage }
  return socket === null ? req?.socket : undefined
}

function onceClosed(socket: Socket, then: () => void): () => void {
  let all = waiting.get(socket)
  if (all === undefined) {
    const made = new Set<() => void>()
    waiting.set(socket, (all = made))
    socket.once('close', () => {
      for (const one of made) one()
    })
  }
  all.add(then)
  const left = all
  return () => left.delete(then)
}
