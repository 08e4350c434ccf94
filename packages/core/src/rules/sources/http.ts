import { unescape as decoded } from 'node:querystring'
import { type Duration, parseDuration } from '../../options/duration.ts'
import { show, WeirError } from '../../report/errors.ts'
import { checkOptions } from '../../report/names.ts'
import { kindOf } from '../../report/show.ts'
import { LONGEST_DOCUMENT } from '../parse.ts'
import type { RulesSource } from '../source.ts'

/** Options of `httpRules`. */
export interface HttpRulesOptions {
  /**
   * Sets how often the address is requested. A duration from 100 ms to a day.
   *
   * @default '10s'
   */
  readonly interval?: Duration
  /**
   * Adds header fields to the request, such as `authorization`. Without that field, a user name and password in the address are sent as
   * it.
   *
   * @default none
   * @example
   * httpRules('https://config.example.com/rules.json', { headers: { authorization: `Bearer ${token}` } })
   */
  readonly headers?: Readonly<Record<string, string>>
}

const USUAL_INTERVAL = 10_000
const SHORTEST_INTERVAL = 100
const LONGEST_INTERVAL = 86_400_000

/** The most redirections that are followed for one answer. */
const MOST_REDIRECTIONS = 5
const REDIRECTIONS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/**
 * Reads rules from an address at a regular interval. It sends the `ETag` of the last answer, so that unchanged rules are not sent again.
 * The answer must have status 200 or 304, and at most 8 MB.
 *
 * Redirections are followed within the origin of the address (the same protocol, host and port), at most 5. A redirection to another origin
 * counts as a failure, because that origin would decide which rules apply, and would get the header fields.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 */
export function httpRules(url: string | URL, options: HttpRulesOptions = {}): RulesSource {
  // The message doesn't show the address, because it may contain a password.
  if (!URL.canParse(String(url)) || !/^https?:$/.test(new URL(url).protocol))
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      `Option "url" is ${kindOf(url)} that is no address. Use one such as "https://config.example/rules.json".`,
    )
  checkOptions('httpRules', options, ['interval', 'headers'], 'options such as { interval: "1m" }')
  const { interval = USUAL_INTERVAL, headers = {} } = options
  const address = new URL(url)
  const fields = fieldsOf(headers)
  // `fetch` accepts no address with a password, and its message would show the password.
  if (address.username !== '' && !fields.has('authorization')) fields.set('authorization', basic(address))
  address.username = ''
  address.password = ''
  let known: { readonly etag: string; readonly text: string } | undefined
  return Object.freeze({
    // The name has no password, and no query, because that may contain one.
    name: `${address.origin}${address.pathname}`,
    interval: parseDuration(interval, 'interval', SHORTEST_INTERVAL, LONGEST_INTERVAL),
    read: async (signal: AbortSignal) => {
      if (known === undefined) fields.delete('if-none-match')
      else fields.set('if-none-match', known.etag)
      const answer = await answerOf(address, fields, signal)
      if (answer.status === 304 && known !== undefined) {
        await answer.body?.cancel()
        return known.text
      }
      if (answer.status !== 200) {
        await answer.body?.cancel()
        throw new Error(`it answers ${answer.status}`)
      }
      const text = await bodyOf(answer)
      const etag = answer.headers.get('etag')
      known = etag === null ? undefined : { etag, text }
      return text
    },
  })
}

/** The answer of an address, after redirections. */
async function answerOf(address: URL, headers: Headers, signal: AbortSignal): Promise<Response> {
  let from = address
  for (let redirections = 0; redirections <= MOST_REDIRECTIONS; redirections++) {
    const answer = await fetch(from, { headers, signal, redirect: 'manual' }).catch(failed)
    const location = REDIRECTIONS.has(answer.status) ? answer.headers.get('location') : null
    if (location === null) return answer
    await answer.body?.cancel()
    if (!URL.canParse(location, from.href)) throw new Error('it redirects to an invalid address')
    const to = new URL(location, from)
    if (to.origin !== address.origin)
      throw new Error(`it redirects to another origin, ${to.origin}. If you trust it, pass that address to httpRules()`)
    // `fetch` accepts no address with a password.
    to.username = ''
    to.password = ''
    from = to
  }
  throw new Error(`it redirects more than ${MOST_REDIRECTIONS} times`)
}

function fieldsOf(headers: Readonly<Record<string, string>>): Headers {
  try {
    return new Headers(headers)
  } catch {
    const wrong = Object.entries(headers ?? {}).find((field) => !isField(field))
    // The value is not shown, because it may be a password.
    const what = wrong === undefined ? `is ${kindOf(headers)}` : `has the field ${show(wrong[0])}, whose name or value HTTP does not allow`
    throw new WeirError(
      'WEIR_INVALID_OPTION',
      `Option "headers" ${what}. Use an object of names and values such as { authorization: "…" }.`,
    )
  }
}

function isField(field: [string, string]): boolean {
  try {
    new Headers([field])
    return true
  } catch {
    return false
  }
}

function basic({ username, password }: URL): string {
  return `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')}`
}

/**
 * Throws the cause of a failed `fetch`, because its own message has no reason. If several addresses were tried, the cause has only a code.
 */
function failed(error: Error): never {
  const { cause } = error
  throw cause instanceof Error ? new Error(cause.message || String((cause as NodeJS.ErrnoException).code), { cause: error }) : error
}

async function bodyOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.byteLength
    // Leaving the loop ends the transfer.
    if (size > LONGEST_DOCUMENT) throw new Error(`it sends more than ${LONGEST_DOCUMENT} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
