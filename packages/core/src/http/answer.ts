import { type Decision, PolicyDecision } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { FaceOptions } from './face-options.ts'
import { type HeaderWriter, retryAfterSeconds } from './headers.ts'
import { type Body, type Form, preferredForm, problemBody } from './problem.ts'
import type { RequestReader } from './reader.ts'
import type { Refusal } from './refusal.ts'
import { isPromise } from './rules.ts'

/** Reports a cause of trouble, the first time only. */
export type Report = (cause: string, what: string, error: unknown) => void

/** What a refused client was told, and what that followed from. */
interface Said {
  readonly policy: Policy | undefined
  readonly remaining: number
  readonly wait: number | undefined
  readonly form: Form
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Body
}

/** Makes the answers to refused requests, by the options of a face. */
export class Answers<Req, Name extends string> {
  readonly #options: FaceOptions<Req, never, Name>
  readonly #reader: RequestReader<Req>
  readonly #report: Report
  #last: Said | undefined

  constructor(options: FaceOptions<Req, never, Name>, reader: RequestReader<Req>, report: Report) {
    this.#options = options
    this.#reader = reader
    this.#report = report
  }

  /** The answer to one request. Its body suits the client, or is the `message` of the options. */
  make(request: Req, decision: Decision<Name>, fields: HeaderWriter): Refusal<Name> {
    const wait = retryAfterSeconds(decision)
    const form = preferredForm(this.#reader.header(request, 'accept'))
    let said = this.#last
    if (said === undefined || !repeats(said, decision, wait, form)) {
      said = this.#compose(request, decision, fields, wait, form)
      // Under an attack most refusals by one policy say the same. Of several policies each decision has its own parts.
      this.#last = this.#options.message === undefined && decision instanceof PolicyDecision ? said : undefined
    }
    const { status, headers, body } = said
    return { decision, status, headers: { ...headers }, type: body.type, body: body.text }
  }

  #compose(request: Req, decision: Decision<Name>, fields: HeaderWriter, wait: number | undefined, form: Form): Said {
    const { policy, remaining } = decision
    const status = policy === undefined ? 403 : (this.#options.statusCode ?? 429)
    const headers: Record<string, string> = {}
    if (policy !== undefined) {
      fields.write(decision, headers, setProperty)
      if (wait !== undefined) headers['Retry-After'] = String(wait)
    }
    // A cached refusal would outlive the limit, and reach other clients.
    headers['Cache-Control'] = 'no-store'
    const body = this.#message(request, decision) ?? problemBody(form, decision, status, wait)
    return { policy, remaining, wait, form, status, headers, body }
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

function repeats(said: Said, decision: Decision, wait: number | undefined, form: Form): boolean {
  return (
    said.policy === decision.policy &&
    said.remaining === decision.remaining &&
    said.wait === wait &&
    said.form === form &&
    decision instanceof PolicyDecision
  )
}
