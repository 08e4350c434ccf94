import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** The answer to a request: a response, or the bare socket of an upgrade. */
export type Answering = ServerResponse | Http2ServerResponse | Duplex

/** Functions that wait for the end of a connection, by its socket: one listener for all pipelined requests. */
const waiting = new WeakMap<NodeJS.EventEmitter, Set<() => void>>()

/**
 * Calls a function once, as soon as an answer has been sent or nobody is left to get it; at once where that is so already.
 *
 * @returns what ends the waiting
 */
export function whenEnded(answering: Answering, then: () => void): () => void {
  const { destroyed, stream } = answering as Partial<Http2ServerResponse & Duplex>
  // A response that waits for those before it is told nothing of its connection's end.
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
  // It takes itself out, so it needs none of what `once` makes for that.
  answering.on('close', ended)
  const forget = queue === undefined ? undefined : onceClosed(queue, ended)
  return leave
}

/** The socket of a response to a pipelined request, while others are being sent. */
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
