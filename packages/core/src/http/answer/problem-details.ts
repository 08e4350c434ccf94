import type { Decision } from '../../decide/decision.ts'
import { Recent } from '../../keys/recent.ts'
import { preferredType } from './accept.ts'

/** The problem type of a refusal (draft-ietf-httpapi-ratelimit-headers-10, section 5.1). */
export const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded'

const DENIED = 'Forbidden'
const TITLE = 'Request cannot be satisfied as assigned quota has been exceeded'

/** What a client is told whose request costs more than the limit. */
export const NEVER = 'This request costs more than the limit allows. Trying again does not help.'

/** A body and its media type. */
export interface Body {
  readonly type: string
  readonly text: string
}

/** The problem details of a refused request (RFC 9457), as they stand in the JSON body. */
export interface ProblemDetails {
  /** `QUOTA_EXCEEDED`; `about:blank` for a request on the deny list. */
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail?: string
  /** The names of the policies whose limit is used up. */
  readonly 'violated-policies'?: readonly string[]
}

/** The names of the policies that refused. */
export function violatedPolicies(decision: Decision): string[] {
  const names: string[] = []
  for (const one of decision.parts) if (!one.allowed && one.policy !== undefined) names.push(one.policy.name)
  return names
}

/**
 * The problem details of a refused request, as JSON. `retryAfter` in seconds; undefined when the request never fits.
 *
 * Put together from its parts, since a refusal must not cost more than an answer. Only the names need escaping.
 */
export function problemDetails(decision: Decision, status: number, retryAfter: number | undefined): string {
  if (decision.policy === undefined) return `{"type":"about:blank","title":"${DENIED}","status":${status}}`
  const names = JSON.stringify(violatedPolicies(decision))
  return `{"type":"${QUOTA_EXCEEDED}","title":"${TITLE}","status":${status},"detail":"${detail(retryAfter)}","violated-policies":${names}}`
}

function detail(retryAfter: number | undefined): string {
  if (retryAfter === undefined) return NEVER
  return `Too many requests. Try again in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`
}

/** The standard body of a refusal: problem details in JSON, a page, or plain text for all others. */
export function standardBody(form: Form, decision: Decision, status: number, retryAfter: number | undefined): Body {
  const text = decision.policy === undefined ? `${DENIED}.` : detail(retryAfter)
  switch (form) {
    case 'json':
      return { type: 'application/problem+json', text: problemDetails(decision, status, retryAfter) }
    case 'html':
      return { type: 'text/html; charset=utf-8', text: page(text) }
    case 'text':
      return { type: 'text/plain; charset=utf-8', text: `${text}\n` }
  }
}

function page(text: string): string {
  return `<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Request refused</title>\n<p>${text}</p>\n</html>\n`
}

/** The forms of a refusal's body. */
export type Form = 'json' | 'html' | 'text'

// In the order that decides between types which a client likes equally well.
const FORMS = {
  'application/problem+json': 'json',
  'application/json': 'json',
  'text/html': 'html',
  'text/plain': 'text',
} as const
const TYPES = Object.keys(FORMS) as readonly (keyof typeof FORMS)[]
const LONGEST_REMEMBERED = 256
const seen = new Recent<Form>(100)

/** The form of a body that suits an `Accept` header; plain text where none of them does. */
export function preferredForm(accept: string | undefined): Form {
  if (accept === undefined || accept === '' || accept === '*/*' || accept === 'application/json') return 'json'
  // Not even looked up: a Map reads all of a long text.
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
