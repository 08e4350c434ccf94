/** Addresses that no client has (RFC 5737). */
const CHOSEN = '192.0.2.1'
const STRANGER = '203.0.113.1'
/** The list is longer than any chain of proxies, so that no number of trusted proxies reaches its first address. */
const LISTED = [CHOSEN, ...new Array<string>(200).fill(STRANGER)].join(', ')

/**
 * Whether the proxy setting of Express or Fastify accepts the first address of any client's X-Forwarded-For. Such settings are `true`,
 * networks that add up to all addresses, and a function that trusts every address. The setting can't be read from a request, so this
 * function tries it with a stranger's request.
 *
 * @param request of the framework; it is not changed
 */
export function trustsAnyone(request: object): boolean {
  const stranger = { headers: { 'x-forwarded-for': LISTED }, socket: { remoteAddress: STRANGER }, connection: { remoteAddress: STRANGER } }
  try {
    const forged: { readonly ip?: unknown } = Object.create(request, Object.getOwnPropertyDescriptors({ ...stranger, raw: stranger }))
    return forged.ip === CHOSEN
  } catch {
    // A trust function of the application may throw.
    return false
  }
}
