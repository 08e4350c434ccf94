import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

/** A field that makes a browser send a preflight request from other origins. The dashboard never allows it. */
const ACTION_FIELD = 'x-weir-dashboard'

/** Whether a browser reports that a page of another origin made this request. Other clients report nothing. */
export function isFromElsewhere(request: IncomingMessage): boolean {
  const site = request.headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  const { origin } = request.headers
  if (origin === undefined) return false
  try {
    return new URL(origin).host !== hostOf(request)
  } catch {
    return true
  }
}

/** Whether our page made a request that changes state, and not another page in the same browser. */
export function isOwnAction(request: IncomingMessage): boolean {
  return request.headers[ACTION_FIELD] === '1' && !isFromElsewhere(request)
}

/**
 * Whether a request names its server by an address or as `localhost`. The owner of any other name could point it to this machine. Then a
 * page of the owner and this server would have the same origin in a visitor's browser (DNS rebinding).
 */
export function hasSafeHost(request: IncomingMessage): boolean {
  const name = (hostOf(request) ?? '').replace(/:\d*$/, '').toLowerCase()
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  return isIP(name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name) > 0
}

function hostOf({ headers }: IncomingMessage): string | undefined {
  return (headers[':authority'] as string | undefined) ?? headers.host
}
