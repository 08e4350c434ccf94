import { isIP } from 'node:net'
import { bareAddress } from '@weir/core/adapter'
import { addresses } from '@weir/core/http'
import type { LogRecord } from './record.ts'

/** Longest text of an address, with brackets, zone and port. */
const LONGEST_ADDRESS = 100
/** With quotes around it, or as RFC 7239 has it: `for="[2001:db8::1]:4711";proto=https`. */
const ADDRESS = /^\s*(?:for=)?"?([^"\s;]+)"?\s*(?:;.*)?$/i
/** Host names, and other names that a field gives to clients. */
const NAME = /^[^\s,:|="/]+$/
/** How servers write that there is none: sockets of Unix, fields that are empty. */
const NOBODY = /^(?:-|_|unknown|null|undefined|unix:?.*)$/i

/** The address that a word stands for, without port and brackets; undefined if it is none. */
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
/** The beginnings of all of those: most public addresses need no further look. */
const MAY_BE_PRIVATE = /^(?:1(?:0|00|27|69|72|92)\.|[0:]*:|f)/i

function isPrivate(address: string): boolean {
  return MAY_BE_PRIVATE.test(address) && PRIVATE.includes(address)
}

/**
 * The client in a field of a log.
 *
 * @param text an address, a name, or a list of addresses to which each proxy has added one at the end
 * @param proxies how many of the addresses at the end were added by proxies that are trusted; undefined: the client is the only public one
 * @returns undefined if it is not known: there is none, or several addresses of the list may be the client's
 */
export function clientIn(text: string, proxies?: number): string | undefined {
  if (isIP(text) !== 0) return text
  if (!text.includes(',')) return addressIn(text) ?? (NAME.test(text) && !NOBODY.test(text) ? text : undefined)
  const list = text.split(',').map(addressIn)
  if (proxies !== undefined) return list[Math.max(0, list.length - proxies)]
  const [client, ...others] = new Set(list.filter((one) => one !== undefined && !isPrivate(one)))
  // All of them are private: the request came from within.
  return client === undefined ? list[0] : others.length === 0 ? client : undefined
}

/** Where clients are, as the options say. */
export interface ClientOptions {
  /** The name of a field, in lower case; of text the number of a word before the time too. Default: where servers put it. */
  readonly field?: string | undefined
  readonly proxies?: number | undefined
}

/** Distinct private addresses that may be balancers: services have more clients. */
const MOST_BALANCERS = 32
/** If this part of the requests comes from an address and names other clients in a header, the address is a balancer. */
const NEARLY_ALL = 0.9
const FORWARDED = 'x-forwarded-for'
/** Requests of a log that are looked at for balancers, the first ones: it costs more than the rest of reading them. */
const WATCHED = 10_000

/** Where clients were read from. */
export interface ClientSummary {
  /** As `--client-field` names it, and how many requests have it; undefined by default. */
  readonly field: { readonly name: string; readonly requests: number } | undefined
  /** Where the clients of the other requests stand. */
  readonly others: readonly string[]
  /** Balancers that seem to stand before the server: of the first `of` requests those of these addresses, most of which name another client in the field. */
  readonly balancers?: { readonly requests: number; readonly of: number; readonly addresses: readonly string[]; readonly field: string }
}

/** Finds the client of each request, and notices if it is a balancer. */
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

  /** @returns undefined if it is not known */
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
    // Copied: a part of a line would keep all that was read with it.
    if (this.#private.size <= MOST_BALANCERS && !this.#private.has(client)) this.#private.add(Buffer.from(client).toString())
    const forwarded = record.field(FORWARDED)
    if (forwarded !== undefined && clientIn(forwarded) !== client) this.#forwarded++
  }
}
