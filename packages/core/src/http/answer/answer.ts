import type { Decision } from '../../decide/decision.ts'
import type { Policy } from '../../decide/policy.ts'
import type { DecisionReason } from '../../report/stats.ts'
import { askAll, isThenable, NoAnswer, type Patience, settle } from '../../report/user-function.ts'
import type { AdapterOptions } from '../adapter-options.ts'
import type { Report } from '../reports.ts'
import type { RequestReader } from '../request/reader.ts'
import { type HeaderWriter, retryAfterSeconds } from './headers.ts'
import { type Body, type Form, preferredForm, standardBody } from './problem-details.ts'
import type { Rejection } from './rejection.ts'

type MessageFunction<Req, Name extends string> = (request: Req, decision: Decision<Name>) => unknown

/** The answer that a rejected client got, and the decision behind it. */
interface ToldRejection {
  readonly policy: Policy | undefined
  readonly reason: DecisionReason
  readonly remaining: number
  readonly wait: number | undefined
  readonly form: Form
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Body
}

/** Makes the answers to rejected requests, by the options of an adapter. */
export class Answers<Req, Name extends string> {
  readonly #options: AdapterOptions<Req, never, Name>
  readonly #reader: RequestReader<Req>
  readonly #patience: Patience
  readonly #report: Report
  #last: ToldRejection | undefined

  constructor(options: AdapterOptions<Req, never, Name>, reader: RequestReader<Req>, patience: Patience, report: Report) {
    this.#options = options
    this.#patience = patience
    this.#reader = reader
    this.#report = report
  }

  /**
   * The answer to one request. Its body suits the client, or is the `message` of the options. It is a promise only if `message` is a
   * function that answers later. The promise never rejects.
   */
  make(request: Req, decision: Decision<Name>, fields: HeaderWriter): Rejection<Name> | Promise<Rejection<Name>> {
    const wait = retryAfterSeconds(decision)
    const form = preferredForm(this.#reader.header(request, 'accept'))
    const { message } = this.#options
    if (message === undefined) return this.#standard(decision, fields, wait, form)
    const answer = typeof message === 'function' ? askAll(message as MessageFunction<Req, Name>, request, decision) : message
    const make = (value: unknown) => {
      const body = this.#bodyOf(value)
      return body === undefined
        ? this.#standard(decision, fields, wait, form)
        : rejectionOf(decision, this.#compose(decision, fields, wait, form, body))
    }
    // If `message` is no function, it is the body itself, whatever members it has.
    return typeof message === 'function' && isThenable(answer)
      ? settle(answer, this.#patience).then(({ value }) => make(value))
      : make(answer)
  }

  #standard(decision: Decision<Name>, fields: HeaderWriter, wait: number | undefined, form: Form): Rejection<Name> {
    let told = this.#last
    if (told === undefined || !repeats(told, decision, wait, form)) {
      told = this.#compose(decision, fields, wait, form)
      // Under an attack most rejections by one policy are equal, so the last one is reused. With several policies, each decision has its
      // own parts.
      this.#last = isOfOne(decision) && fields.timeless ? told : undefined
    }
    return rejectionOf(decision, told)
  }

  #compose(decision: Decision<Name>, fields: HeaderWriter, wait: number | undefined, form: Form, body?: Body): ToldRejection {
    const { policy, reason, remaining } = decision
    const status = policy === undefined ? 403 : (this.#options.statusCode ?? 429)
    const headers: Record<string, string> = {}
    if (policy !== undefined) {
      fields.write(decision, headers, setProperty)
      if (wait && this.#options.sendRetryAfter !== false) headers['Retry-After'] = String(wait)
    }
    // A cached rejection would outlive the limit, and reach other clients.
    headers['Cache-Control'] = 'no-store'
    return { policy, reason, remaining, wait, form, status, headers, body: body ?? standardBody(form, decision, status, wait) }
  }

  /** A message as a body. Undefined if it can't be one. */
  #bodyOf(message: unknown): Body | undefined {
    if (typeof message === 'string') return { type: 'text/plain; charset=utf-8', text: message }
    if (message instanceof NoAnswer) {
      this.#report('message', 'Option "message"', message)
      return undefined
    }
    try {
      const text = JSON.stringify(message)
      if (text !== undefined) return { type: 'application/json; charset=utf-8', text }
      this.#report('message', 'Option "message"', 'it must be or return a string or a value for JSON')
    } catch (error) {
      this.#report('message', 'Option "message"', error)
    }
    return undefined
  }
}

function rejectionOf<Name extends string>(decision: Decision<Name>, { status, headers, body }: ToldRejection): Rejection<Name> {
  return { decision, status, headers: { ...headers }, type: body.type, body: body.text }
}

/** Whether a decision comes from one policy, and so is its own only part. */
function isOfOne(decision: Decision): boolean {
  return decision.parts[0] === decision
}

function setProperty(target: Record<string, string>, name: string, value: string): void {
  target[name] = value
}

function repeats(told: ToldRejection, decision: Decision, wait: number | undefined, form: Form): boolean {
  return (
    told.policy === decision.policy &&
    told.reason === decision.reason &&
    told.remaining === decision.remaining &&
    told.wait === wait &&
    told.form === form &&
    isOfOne(decision)
  )
}
