import { isIP } from 'node:net'
import { bareAddress } from '@weir/core/adapter'
import { addresses } from '@weir/core/http'
import type { LogRecord } from './record.ts'

/** Longest text of an address, with brackets, zone and port. */
const LONGEST_ADDRESS = 100
/** An address in quotes, or in the form of RFC 7239: `for="[2001:db8::1]:4711";proto=https`. */
const ADDRESS = /^\s*(?:for=)?"?([^"\s;]+)"?\s*(?:;.*)?$/i
/** A host name, or another name that a field gives to a client. */
const NAME = /^[^\s,:|="/]+$/
/** Texts that servers write if there is no client: Unix sockets and empty fields. */
const NOBODY = /^(?:-|_|unknown|null|undefined|unix:?.*)$/i

/** The address in a word, without port and brackets. Undefined if the word is no address. */
export function addressIn(word: string): string | undefined {
  if (isIP(word) !== 0) return word
  if (word.length > LONGEST_ADDRESS) return undefined
  const [, found] = ADDRESS.exec(word) ?? []
  const address = found && bareAddress(found)
  return address !== undefined && isIP(address) !== 0 ? address : undefined
}

/** Whether a text is an address, or a list with one. */
export function hasAddress(text: string): boolean {
  return isIP(text) !== 0 || text.split(',').some((part) => addressIn(part) !== undefined)
}

const PRIVATE = addresses(
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '::1',
  'fc00::/7',
  'fe80::/10',
)
/** A quick test by the first characters, because most public addresses need no look-up in the list above. */
const MAY_BE_PRIVATE = /^(?:1(?:0|00|27|69|72|92)\.|[0:]*:|f)/i

function isPrivate(address: string): boolean {
  return MAY_BE_PRIVATE.test(address) && PRIVATE.includes(address)
}

/**
 * The client in a field of a log.
 *
 * @param text an address, a name, or a list to which each proxy has added an address at the end
 * @param proxies number of addresses at the end that trusted proxies have added. If undefined, the client is the only public address
 * @returns undefined without a client, or if several addresses of the list may be the client's
 */
export function clientIn(text: string, proxies?: number): string | undefined {
  if (isIP(text) !== 0) return text
  if (!text.includes(',')) return addressIn(text) ?? (NAME.test(text) && !NOBODY.test(text) ? text : undefined)
  const list = text.split(',').map(addressIn)
  if (proxies !== undefined) return list[Math.max(0, list.length - proxies)]
  const [client, ...others] = new Set(list.filter((one) => one !== undefined && !isPrivate(one)))
  // If all addresses are private, the request came from the internal network.
  return client === undefined ? list[0] : others.length === 0 ? client : undefined
}

/** Fields from which clients are read. */
export interface ClientOptions {
  /** A field's name in lower case. In text logs also the number of a word before the time. By default the usual fields of servers. */
  readonly field?: string | undefined
  readonly proxies?: number | undefined
}

/** The most distinct private addresses that count as balancers. With more of them, they are probably clients. */
const MOST_BALANCERS = 32
/** If this part of the requests comes from an address and names other clients in a header, the address is a balancer. */
const NEARLY_ALL = 0.9
const FORWARDED = 'x-forwarded-for'
/** Number of first requests to check for balancers. The check costs more than all other work on a line. */
const WATCHED = 10_000

/** Fields from which clients were read. */
export interface ClientSummary {
  /** The field as `--client-field` names it, and the number of requests with it. Undefined without that option. */
  readonly field: { readonly name: string; readonly requests: number } | undefined
  /** Fields from which the clients of the other requests were read. */
  readonly others: readonly string[]
  /**
   * Addresses that are probably balancers: most of their requests name another client in `field`. `requests` of the first `of` requests
   * come from them.
   */
  readonly balancers?: { readonly requests: number; readonly of: number; readonly addresses: readonly string[]; readonly field: string }
}

/** Finds the client of each request, and detects if it is a balancer. */
export class Clients {
  readonly options: ClientOptions
  readonly #private = new Set<string>()
  readonly #others = new Set<string>()
  #requests = 0
  #named = 0
  #fromPrivate = 0
  #forwarded = 0

  constructor(options: ClientOptions = {}) {
    this.options = options
  }

  /** @returns undefined if the client is unknown */
  of(record: LogRecord): string | undefined {
    this.#requests++
    const { field, proxies } = this.options
    const named = field === undefined ? undefined : record.field(field)
    if (named !== undefined) {
      this.#named++
      return clientIn(named, proxies)
    }
    const client = clientIn(record.client, proxies)
    if (client === undefined) return undefined
    this.#others.add(record.clientField)
    if (field === undefined && this.#requests <= WATCHED && isPrivate(client)) this.#watch(client, record)
    return client
  }

  get summary(): ClientSummary {
    const { field } = this.options
    const balanced = this.#private.size <= MOST_BALANCERS && this.#forwarded > NEARLY_ALL * Math.min(this.#requests, WATCHED)
    return {
      field: field === undefined ? undefined : { name: field, requests: this.#named },
      others: [...this.#others],
      ...(balanced && {
        balancers: { requests: this.#fromPrivate, of: Math.min(this.#requests, WATCHED), addresses: [...this.#private], field: FORWARDED },
      }),
    }
  }

  #watch(client: string, record: LogRecord): void {
    this.#fromPrivate++
    // Copies the text, because a substring keeps the whole piece of the log in memory.
    if (this.#private.size <= MOST_BALANCERS && !this.#private.has(client)) this.#private.add(Buffer.from(client).toString())
    const forwarded = record.field(FORWARDED)
    if (forwarded !== undefined && clientIn(forwarded) !== client) this.#forwarded++
  }
}
