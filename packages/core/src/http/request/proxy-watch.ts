import { show, WeirError } from '../../report/errors.ts'
import { UNKNOWN_ADDRESS } from './address.ts'
import type { RequestReader } from './reader.ts'

/** Fields in which a proxy passes on the address of its client. */
const FORWARDING = ['x-forwarded-for', 'forwarded', 'x-real-ip'] as const
/** Requests that are searched for them. A proxy shows itself in far fewer; health checks, which have none, may come first. */
const WATCHED = 10_000

/**
 * Warns about proxy settings under which clients choose their address, or many clients share one. Each cause is reported
 * at most once, and `report` drops repetitions.
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

  /**
   * Looks at a request that is counted by its address.
   *
   * @param address by the framework
   * @param key made of the address
   */
  look(request: Req, address: string | undefined, key: string): void {
    if (key === UNKNOWN_ADDRESS && !this.#unknown) this.#lookAtUnknown(request, address)
    if (this.#left === 0) return
    if (this.#left-- === WATCHED) this.#lookAtSetting(request)
    if (address === undefined || this.#reader.socket?.(request)?.remoteAddress !== address) return
    const field = FORWARDING.find((name) => this.#reader.header(request, name) !== undefined)
    if (field === undefined) return
    this.#left = 0
    this.#warn(
      'proxy-ignored',
      `A request from ${address} has the header "${field}", but the framework ignores it, so all clients behind this proxy share one key. If the proxy is yours, set the framework's proxy setting to its address; if not, ignore this warning.`,
    )
  }

  #lookAtSetting(request: Req): void {
    const setting = this.#reader.forgeable?.(request)
    if (setting !== undefined) this.#warn('proxy', `Clients can choose the address that they are counted by: ${setting}.`)
  }

  #lookAtUnknown(request: Req, address: string | undefined): void {
    // A connection that has ended has no address any more: that is the client's doing, not a setting's.
    const open = this.#reader.socket?.(request)?.destroyed === false
    if (address === undefined && !open) return
    this.#unknown = true
    const found = address === undefined ? 'Its connection has none (a Unix socket?)' : `The framework found ${show(address)}`
    this.#warn(
      'address-unknown',
      `The address of a client is unknown. ${found}. All such clients share the key "${UNKNOWN_ADDRESS}". Set the framework's proxy setting so that it trusts your proxy.`,
    )
  }

  #warn(cause: string, message: string): void {
    this.#report(new WeirError('WEIR_TRUST_PROXY', message), cause)
  }
}
