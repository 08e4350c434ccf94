import type { Decision } from '../../decide/decision.ts'
import { Recent } from '../../keys/recent.ts'
import type { DecisionReason } from '../../report/stats.ts'
import { preferredType } from './accept.ts'

/** The problem types of a rejection (draft-ietf-httpapi-ratelimit-headers-11, section 5). */
export const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded'
const REDUCED_CAPACITY = 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity'
const ABNORMAL_USAGE = 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected'

const DENIED = 'Forbidden'

/** The problem of each reason: its type and title. */
function problemOf(reason: DecisionReason): readonly [type: string, title: string] {
  if (reason === 'blocked') return [ABNORMAL_USAGE, 'Request not satisfied due to detection of abnormal request pattern']
  if (reason === 'storeDown' || reason === 'overflow')
    return [REDUCED_CAPACITY, 'Request cannot be satisfied due to temporary server capacity constraints']
  return [QUOTA_EXCEEDED, 'Request cannot be satisfied as assigned quota has been exceeded']
}

/** The text for a client whose request costs more than the limit. */
const NEVER = 'This request costs more than the limit allows. Trying again does not help.'

/** A body and its media type. */
export interface Body {
  readonly type: string
  readonly text: string
}

/** The problem details of a rejected request (RFC 9457), as in the JSON body. */
export interface ProblemDetails {
  /** One of the draft's three problem types, or `about:blank` for a client on the deny list. */
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail?: string
  /** The names of the policies that rejected. */
  readonly 'violated-policies'?: readonly string[]
}

/** The names of the policies that rejected. */
export function violatedPolicies(decision: Decision): string[] {
  const names: string[] = []
  for (const one of decision.parts) if (!one.allowed && one.policy !== undefined) names.push(one.policy.name)
  return names
}

/**
 * The problem details of a rejected request, as JSON. `wait` is in seconds. It is undefined if the request never fits, and 0 if the time is
 * unknown.
 *
 * The JSON is put together from its parts, because a rejection must not cost more than an answer. Only the names need escaping.
 */
export function problemDetails(decision: Decision, status: number, wait: number | undefined): string {
  if (decision.policy === undefined) return `{"type":"about:blank","title":"${DENIED}","status":${status}}`
  const names = JSON.stringify(violatedPolicies(decision))
  const [type, title] = problemOf(decision.reason)
  return `{"type":"${type}","title":"${title}","status":${status},"detail":"${detail(decision, wait)}","violated-policies":${names}}`
}

/** The text for a client that gets no time to retry, because the end of requests in flight isn't known. */
export function noTime({ parts }: Decision, wait: number | undefined): string {
  const busy = parts.find(({ allowed }) => !allowed)?.policy?.algorithm.slots?.busy
  return wait === 0 ? (busy ?? '') : NEVER
}

function detail(decision: Decision, wait: number | undefined): string {
  if (!wait) return noTime(decision, wait)
  return `Too many requests. Try again in ${wait} ${wait === 1 ? 'second' : 'seconds'}.`
}

/** The standard body of a rejection: problem details in JSON, a page, or plain text for all other clients. */
export function standardBody(form: Form, decision: Decision, status: number, wait: number | undefined): Body {
  const text = decision.policy === undefined ? `${DENIED}.` : detail(decision, wait)
  switch (form) {
    case 'json':
      return { type: 'application/problem+json', text: problemDetails(decision, status, wait) }
    case 'html':
      return { type: 'text/html; charset=utf-8', text: page(text) }
    case 'text':
      return { type: 'text/plain; charset=utf-8', text: `${text}\n` }
  }
}

function page(text: string): string {
  return `<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Request rejected</title>\n<p>${text}</p>\n</html>\n`
}

/** The forms of a rejection's body. */
export type Form = 'json' | 'html' | 'text'

// The order decides between types that a client likes equally well.
const FORMS = {
  'application/problem+json': 'json',
  'application/json': 'json',
  'text/html': 'html',
  'text/plain': 'text',
} as const
const TYPES = Object.keys(FORMS) as readonly (keyof typeof FORMS)[]
const LONGEST_REMEMBERED = 256
const seen = new Recent<Form>(100)

/** The form of a body that suits an `Accept` header, or plain text if none does. */
export function preferredForm(accept: string | undefined): Form {
  if (accept === undefined || accept === '' || accept === '*/*' || accept === 'application/json') return 'json'
  // A long text is not looked up, because a Map would read all of it.
  if (accept.length > LONGEST_REMEMBERED) return formOf(accept)
  let form = seen.get(accept)
  if (form === undefined) {
    form = formOf(accept)
    seen.set(accept, form)
  }
  return form
}

function formOf(accept: string): Form {
  const type = preferredType(accept, TYPES)
  return type === undefined ? 'text' : FORMS[type]
}
