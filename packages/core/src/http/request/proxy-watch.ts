import { show, WeirError } from '../../report/errors.ts'
import { reasonOf } from '../../report/show.ts'
import { UNKNOWN_ADDRESS } from './address.ts'
import type { RequestReader } from './reader.ts'

/** Fields in which a proxy sends the address of its client. CDNs add fields of their own, but send the first one too. */
const FORWARDING = ['x-forwarded-for', 'forwarded', 'x-real-ip'] as const
/**
 * The number of requests that are searched for these fields. A proxy shows itself in far fewer, but health checks without the fields may
 * come first.
 */
const WATCHED = 10_000

/**
 * Warns about proxy settings under which clients choose their address, or many clients share one. It reports each cause at most once, and
 * `report` drops repetitions.
 */
export class ProxyWatch<Req> {
  readonly #reader: RequestReader<Req>
  readonly #report: (error: WeirError, subject: string) => void
  #left = WATCHED
  #unknown = false

  constructor(reader: RequestReader<Req>, report: (error: WeirError, subject: string) => void) {
    this.#reader = reader
    this.#report = report
  }

  /** Whether requests are still searched for the fields of proxies. */
  get watching(): boolean {
    return this.#left > 0
  }

  /**
   * Checks a request that is counted, allowed or denied by its address. Never throws.
   *
   * @param address from the framework
   * @param known whether it is an address
   */
  look(request: Req, address: string | undefined, known: boolean): void {
    if (this.#left === 0 && (known || this.#unknown)) return
    try {
      if (!known && !this.#unknown) this.#lookAtUnknown(request, address)
      if (this.#left > 0) this.#lookForProxies(request, address)
    } catch {
      // The framework may call functions of the application, which may throw. The request is counted anyway.
    }
  }

  /** Reports a request whose address could not be found, because the framework or a function threw. Never throws. */
  failed(request: Req, error: unknown): void {
    try {
      // Some connections can't be read at all once they have ended.
      if (this.#unknown || this.#reader.socket?.(request)?.destroyed === true) return
    } catch {
      return
    }
    this.#unknown = true
    this.#warn(
      'address-unknown',
      `The address of a client could not be found (${reasonOf(error)}). All such requests share the key "${UNKNOWN_ADDRESS}". Check the function or the setting that reads addresses.`,
    )
  }

  #lookForProxies(request: Req, address: string | undefined): void {
    if (this.#left-- === WATCHED) this.#lookAtSetting(request)
    if (address === undefined || this.#reader.socket?.(request)?.remoteAddress !== address) return
    const field = FORWARDING.find((name) => this.#reader.header(request, name) !== undefined)
    // A client on the proxy's own machine has the address of the connection, although the framework uses the header.
    if (field === undefined || this.#reader.header(request, field)?.split(',', 1)[0]?.trim() === address) return
    this.#left = 0
    const unread = field === 'x-forwarded-for' ? '' : ` Have the proxy send X-Forwarded-For: by default frameworks don't read "${field}".`
    this.#warn(
      'proxy-ignored',
      `A request from ${address} has the header "${field}", but the framework ignores it. If your service is not behind a proxy, a client sent the header: ignore this warning. If it is, all clients have the address of the proxy. ${this.#howToTrust(request, false)}${unread}`,
    )
  }

  #lookAtSetting(request: Req): void {
    const setting = this.#reader.forgeable?.(request)
    if (setting !== undefined)
      this.#warn('proxy', `Clients can choose the address that they are counted by: ${setting}. Trust only your own proxies.`)
  }

  #lookAtUnknown(request: Req, address: string | undefined): void {
    const connection = this.#reader.socket?.(request)
    // The address of a disconnected client is unknown too, and no setting would change that. Only Unix sockets have no local address.
    const gone = connection?.destroyed === true || connection?.localAddress !== undefined
    if (address === undefined && gone) return
    this.#unknown = true
    const why =
      address !== undefined
        ? `The framework uses ${show(address)} as the address of a client. Either your proxy writes no addresses into its header, or clients can write the header.`
        : connection === undefined
          ? 'A request came without a connection that Weir can read.'
          : 'A request came over a Unix socket, which has no address.'
    const unsent = connection !== undefined && this.#reader.header(request, 'x-forwarded-for') === undefined
    this.#warn(
      'address-unknown',
      `${why} All such requests share the key "${UNKNOWN_ADDRESS}". ${this.#howToTrust(request, address === undefined)}${unsent ? ' Have the proxy send X-Forwarded-For.' : ''}`,
    )
  }

  #howToTrust(request: Req, withoutAddress: boolean): string {
    return this.#reader.howToTrust?.(request, withoutAddress) ?? "Set the framework's proxy setting so that it trusts your proxy."
  }

  #warn(cause: string, message: string): void {
    this.#report(new WeirError('WEIR_WARN_TRUST_PROXY', message), cause)
  }
}
