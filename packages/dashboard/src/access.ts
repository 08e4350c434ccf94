import type { IncomingMessage } from 'node:http'
import type { Access, DashboardOptions } from './options.ts'

/** Fields that proxies add. A request with one of them does not come from this machine, whatever its socket says. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via', 'cf-connecting-ip']
/** A page of another origin can't send it without asking first, and we never agree. */
const ACTION_FIELD = 'x-weir-dashboard'

/** Whether the sender may do this. */
export async function isAllowed(request: IncomingMessage, access: Access, { authorize }: DashboardOptions): Promise<boolean> {
  if (authorize === undefined) return access === 'view' && isLocal(request)
  try {
    return (await authorize(request, access)) === true
  } catch {
    return false
  }
}

/** Whether a request was made on this machine, by its user's own doing: a name that leads here may be anybody's. */
export function isLocal(request: IncomingMessage): boolean {
  const address = request.socket.remoteAddress ?? ''
  const host = (request.headers.host ?? '').replace(/:\d+$/, '')
  return (
    /^(127\.|::1$|::ffff:127\.)/.test(address) &&
    /^(localhost|127(\.\d+){3}|\[::1\])$/i.test(host) &&
    FORWARDED.every((name) => request.headers[name] === undefined)
  )
}

/** Whether a request that changes something was made by our page, and not by another one in the same browser. */
export function isSameOrigin({ headers }: IncomingMessage): boolean {
  if (headers[ACTION_FIELD] !== '1') return false
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  const { origin, host } = headers
  if (origin === undefined) return true
  try {
    return new URL(origin).host === host
  } catch {
    return false
  }
}
