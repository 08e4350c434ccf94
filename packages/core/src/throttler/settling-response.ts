import { jsonValues } from '../budget/json-values.ts'
import type { Receipt } from '../budget/receipt.ts'

/**
 * Settles a receipt when the body of a response has ended, was cancelled or has failed. The body is read only as fast as the caller reads
 * it, so a body that is never read leaves the receipt open until it expires.
 *
 * @param read receives undefined at once, and then each JSON value of the body
 * @returns the response itself if its body is of no matter, and otherwise one that equals it
 */
export function settlingResponse(response: Response, receipt: Receipt, read: (value: unknown) => void): Response {
  read(undefined)
  if (response.status >= 400 || typeof response.body?.getReader !== 'function') {
    receipt.settle()
    return response
  }
  const values = jsonValues(response.headers.get('content-type') ?? '', read)
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  let ended = false
  const settle = (): void => {
    ended = true
    receipt.settle()
  }
  // Node.js releases the connection of an unread response that is no longer used, unless its body has a reader. So the body gets one late.
  const open = (): ReadableStreamDefaultReader<Uint8Array> => {
    const opened = (response.body as ReadableStream<Uint8Array>).getReader()
    // An aborted request fails even if its body is not being read.
    opened.closed.catch(settle)
    return opened
  }
  const stream = new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        reader ??= open()
        let chunk: Uint8Array | undefined
        // Streams of bytes accept no empty chunk.
        do chunk = (await reader.read()).value
        while (chunk?.byteLength === 0)
        if (ended) return
        if (chunk !== undefined) {
          values?.push(chunk)
          // A stream of bytes takes the memory of its chunks, and this one may belong to others.
          controller.enqueue(new Uint8Array(chunk))
          return
        }
        values?.end()
        settle()
        controller.close()
        controller.byobRequest?.respond(0)
      } catch (error) {
        settle()
        reader?.cancel(error).catch(() => {})
        throw error
      }
    },
    async cancel(reason) {
      settle()
      await (reader ?? response.body)?.cancel(reason)
    },
  })
  return like(response, stream)
}

/** A response with another body. */
function like(original: Response, body: ReadableStream | null): Response {
  const { status, statusText, headers, url, redirected, type } = original
  const made = new Response(body, { status, headers })
  return Object.defineProperties(made, {
    // Servers send texts that the constructor rejects.
    statusText: { value: statusText },
    url: { value: url },
    redirected: { value: redirected },
    type: { value: type },
    clone: { value: () => like(original, Response.prototype.clone.call(made).body) },
  })
}
