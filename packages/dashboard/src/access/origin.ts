import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

/** A page of another origin can't send it without asking first, and we never agree. */
const ACTION_FIELD = 'x-weir-dashboard'

/** Whether a browser says that a page of another origin made this request. Other clients do not say. */
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

/** Whether a request that changes something was made by our page, and not by another one in the same browser. */
export function isOwnAction(request: IncomingMessage): boolean {
  return request.headers[ACTION_FIELD] === '1' && !isFromElsewhere(request)
}

/**
 * Whether a request names its server by an address, or as `localhost`. Every other name may be somebody else's, who lets it lead to
 * this machine and so makes a page of his and this server one origin in a visitor's browser (DNS rebinding).
 */
export function hasSafeHost(request: IncomingMessage): boolean {
  const name = (hostOf(request) ?? '').replace(/:\d*$/, '').toLowerCase()
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  return isIP(name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name) > 0
}

function hostOf({ headers }: IncomingMessage): string | undefined {
  return (headers[':authority'] as string | undefined) ?? headers.host
}
