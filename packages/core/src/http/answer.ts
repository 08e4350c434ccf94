import type { Decision } from '../decision.ts'
import type { FaceOptions } from './face-options.ts'
import { type HeaderWriter, retryAfterSeconds } from './headers.ts'
import { type Body, problemBody } from './problem.ts'
import type { RequestReader } from './reader.ts'
import type { Refusal } from './refusal.ts'
import { isPromise } from './rules.ts'

/** Reports a cause of trouble, the first time only. */
export type Report = (cause: string, what: string, error: unknown) => void

/** Makes the answers to refused requests, by the options of a face. */
export class Answers<Req, Name extends string> {
  readonly #options: FaceOptions<Req, never, Name>
  readonly #reader: RequestReader<Req>
  readonly #report: Report

  constructor(options: FaceOptions<Req, never, Name>, reader: RequestReader<Req>, report: Report) {
    this.#options = options
    this.#reader = reader
    this.#report = report
  }

  /** The answer to one request. Its body suits the client, or is the `message` of the options. */
  make(request: Req, decision: Decision<Name>, fields: HeaderWriter): Refusal<Name> {
    const denied = decision.policy === undefined
    const status = denied ? 403 : (this.#options.statusCode ?? 429)
    const headers: Record<string, string> = {}
    const wait = retryAfterSeconds(decision)
    if (!denied) {
      fields.write(decision, headers, setProperty)
      headers['Retry-After'] = String(wait)
    }
    // A cached refusal would outlive the limit, and reach other clients.
    headers['Cache-Control'] = 'no-store'
    const body = this.#message(request, decision) ?? problemBody(this.#reader.header(request, 'accept'), decision, status, wait)
    return { decision, status, headers, type: body.type, body: body.text }
  }

  #message(request: Req, decision: Decision<Name>): Body | undefined {
    let { message } = this.#options
    if (message === undefined) return undefined
    try {
      if (typeof message === 'function')
        message = (message as (request: Req, decision: Decision<Name>) => string | object)(request, decision)
      if (typeof message === 'string') return { type: 'text/plain; charset=utf-8', text: message }
      const text = isPromise(message) ? undefined : JSON.stringify(message)
      if (text !== undefined) return { type: 'application/json; charset=utf-8', text }
      this.#report('message', 'Option "message"', 'it must be or return a string or a value for JSON')
    } catch (error) {
      this.#report('message', 'Option "message"', error)
    }
    return undefined
  }
}

function setProperty(target: Record<string, string>, name: string, value: string): void {
  target[name] = value
}
