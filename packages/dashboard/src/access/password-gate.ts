import type { IncomingMessage, ServerResponse } from 'node:http'
import { answer, html, json } from '../answer.ts'
import { BadBody, readBody } from '../body.ts'
import type { Access } from '../options.ts'
import { SIGN_IN, SIGN_IN_STYLE_HASH } from '../page.generated.ts'
import { Attempts } from './attempts.ts'
import type { Gate, Grant, SignIn, Visit } from './gate.ts'
import { isFromElsewhere, isOwnAction } from './origin.ts'
import type { Password } from './password.ts'
import { lastMomentOf, newSession, renewed, type Session, sessionOf, tokenOf } from './session.ts'

/** Bytes. Enough for the longest password, with nine bytes for each character. */
const LONGEST_BODY = 4_096
/** The most cookies with our name to check. There is one for each path under which the dashboard was seen. */
const MOST_COOKIES = 8

/** The page has no script. */
const POLICY = [
  "default-src 'none'",
  `style-src '${SIGN_IN_STYLE_HASH}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
]

const GOING = '<p class="going">Signed in already? <a href="./">Continue to the dashboard</a></p>'
const ELSEWHERE = 'This form was sent from another page. If a proxy is in front, it must forward the Host header.'

/** `authorize: password(…)`: a page to sign in, and a cookie with the session. */
export class PasswordGate implements Gate, SignIn {
  readonly sessions: SignIn = this
  readonly #password: Password
  readonly #attempts = new Attempts()
  readonly #sign: (text: string) => string
  /**
   * The cookie's name contains a digest of the password: browsers share cookies between the ports of a machine, and dashboards there may
   * have other passwords.
   */
  readonly #cookie: string

  constructor(password: Password) {
    this.#password = password
    this.#sign = (text) => password.sign(`session ${text}`)
    this.#cookie = `weir-session-${password
      .sign('name')
      .replace(/[^a-z0-9]/gi, '')
      .slice(0, 8)}`
  }

  async allow({ request, response, sender }: Visit, access: Access): Promise<Grant | undefined> {
    const now = Date.now()
    const session = this.#sessionOf(request, now)
    if (session === undefined) return undefined
    const next = access === 'view' ? renewed(session, now) : undefined
    if (next !== undefined) this.#setCookie(response, tokenOf(next, this.#sign), sender().secure)
    return { until: lastMomentOf(session), session: session.id }
  }

  reject({ request, response }: Visit, wanted: 'page' | 'data'): void {
    if (wanted === 'page') page(response, 401, '', {}, isFromElsewhere(request))
    else json(response, 401, { error: 'Sign in first.' })
  }

  async signIn({ request, response, sender }: Visit): Promise<void> {
    // Comes before the count, so that another site can't use up the attempts of its visitors.
    if (isFromElsewhere(request)) return page(response, 403, ELSEWHERE)
    const { address, secure } = sender()
    const wait = Math.ceil(this.#attempts.wait(address) / 1_000)
    if (wait > 0) return page(response, 429, `Too many attempts. Try again in ${wait} s.`, { 'Retry-After': String(wait) })
    let given: string
    try {
      given = passwordIn(await readBody(request, LONGEST_BODY))
    } catch (error) {
      if (!(error instanceof BadBody)) throw error
      // The connection closes, so that a client that was too slow can't send the rest.
      if (error.status === 408) response.shouldKeepAlive = false
      return page(response, error.status, error.message)
    }
    if (!this.#password.matches(given)) return page(response, 401, 'Wrong password.')
    this.#setCookie(response, tokenOf(newSession(Date.now()), this.#sign), secure)
    answer(response, 303, 'Signed in.\n', { Location: './' })
  }

  signOut({ request, response, sender }: Visit): string | undefined {
    if (!isOwnAction(request)) {
      json(response, 403, { error: 'Not allowed.' })
      return undefined
    }
    this.#setCookie(response, '', sender().secure)
    json(response, 200, { done: true })
    return this.#sessionOf(request, Date.now())?.id
  }

  close(): void {
    this.#attempts.close()
  }

  #sessionOf({ headers }: IncomingMessage, now: number): Session | undefined {
    const start = `${this.#cookie}=`
    const tokens = (headers.cookie ?? '').split(/; */).filter((pair) => pair.startsWith(start))
    for (const token of tokens.slice(0, MOST_COOKIES)) {
      const session = sessionOf(token.slice(start.length), this.#sign, now)
      if (session !== undefined) return session
    }
    return undefined
  }

  /**
   * Sets no path. Browsers then use the folder of the address that they see, which is the dashboard's, even if a proxy has cut off a part.
   */
  #setCookie(response: ServerResponse, token: string, secure: boolean): void {
    if (response.headersSent || response.destroyed) return
    const cookie = `${this.#cookie}=${token}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}${token === '' ? '; Max-Age=0' : ''}`
    const others = response.getHeader('set-cookie') ?? []
    response.setHeader('Set-Cookie', [...(Array.isArray(others) ? others : [String(others)]), cookie])
  }
}

/** The password in the form's field. Other bodies contain no password. */
function passwordIn(body: unknown): string {
  const given = typeof body === 'string' ? new URLSearchParams(body).get('password') : (body as { password?: unknown }).password
  return typeof given === 'string' ? given : ''
}

/**
 * @param said - plain text of ours, without data from a client
 * @param linked - whether a link of another site led here. The browser then did not send the cookie
 */
function page(response: ServerResponse, status: number, said: string, fields: Readonly<Record<string, string>> = {}, linked = false): void {
  const text = SIGN_IN.replace('<!--said-->', () => (said === '' ? '' : `<p id="said" role="alert">${said}</p>`))
    .replace(' data-said', said === '' ? '' : ' aria-invalid="true" aria-describedby="said"')
    .replace('<!--going-->', () => (linked ? GOING : ''))
  // With `no-referrer` browsers would send the form from the origin "null".
  html(response, status, text, POLICY, { 'Referrer-Policy': 'same-origin', ...fields })
}
