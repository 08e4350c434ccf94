import type { IncomingMessage } from 'node:http'

/** Milliseconds to wait for a body. */
const SLOWEST = 10_000

/** A body that can't be used. The message is for the client. */
export class BadBody extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/**
 * The body of a request: the result of the framework's parser, or its text.
 *
 * @param most - maximum number of bytes to read
 * @throws BadBody
 */
export async function readBody(request: IncomingMessage & { readonly body?: unknown }, most: number): Promise<unknown> {
  const { body } = request
  if (typeof body === 'string') return body
  if (Buffer.isBuffer(body)) return body.toString('utf8')
  // Some parsers leave an empty object if they don't read the type of the body.
  const parsed = typeof body === 'object' && body !== null
  if (parsed && (request.readableEnded || Object.keys(body).length > 0)) return body
  if (request.readableEnded) throw new BadBody(400, 'The body was already read. Mount the dashboard before body parsers.')
  return text(request, most)
}

function text(request: IncomingMessage, most: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const done = (error?: BadBody): void => {
      clearTimeout(timer)
      request.off('data', take).off('end', end).off('close', gone)
      // The rest of a body that is too large is read and discarded.
      request.resume()
      if (error === undefined) resolve(Buffer.concat(chunks).toString('utf8'))
      else reject(error)
    }
    const take = (chunk: Buffer): void => {
      size += chunk.length
      if (size > most) done(new BadBody(413, 'The body is too long.'))
      else chunks.push(chunk)
    }
    const end = (): void => done()
    const gone = (): void => done(new BadBody(400, 'The body ended too early.'))
    const timer = setTimeout(() => done(new BadBody(408, 'The body took too long.')), SLOWEST)
    // An error without a listener would end the process. 'close' follows every error.
    request.on('error', () => {})
    if (Number(request.headers['content-length']) > most) done(new BadBody(413, 'The body is too long.'))
    else if (request.destroyed) gone()
    else request.on('data', take).on('end', end).on('close', gone)
  })
}
