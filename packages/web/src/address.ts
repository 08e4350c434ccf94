import { invalidOption } from '@weir/core/adapter'

/** A bound that no real chain of proxies reaches. */
const MOST_PROXIES = 100

/**
 * Reads the address that the first of your own proxies appended to `X-Forwarded-For`.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` if `proxies` is no whole number from 1 to 100
 */
export function lastForwarded(proxies: number): (listed: string) => string {
  if (!Number.isInteger(proxies) || proxies < 1 || proxies > MOST_PROXIES) {
    throw invalidOption('forwardedAddress', proxies, `the number of your proxies, from 1 to ${MOST_PROXIES}`)
  }
  return (listed) => {
    // Reads from the end, because a client may send a list as long as the server accepts.
    let end = listed.length
    for (let passed = 1; passed < proxies; passed++) {
      const comma = listed.lastIndexOf(',', end - 1)
      if (comma <= 0) break
      end = comma
    }
    return listed.slice(listed.lastIndexOf(',', end - 1) + 1, end).trim()
  }
}

/**
 * Separates the adapter's own option `address` from the others. `factory` is the adapter's `forwardedAddress`.
 *
 * @throws WeirError `WEIR_INVALID_OPTION` if it is no function that finds an address
 */
export function withoutAddress<Find, Input extends object>(
  options: Input & { readonly address?: Find },
  factory: unknown,
  of: string,
): { address: Find | undefined; input: Input } {
  if (typeof options !== 'object' || options === null || !Object.hasOwn(options, 'address')) return { address: undefined, input: options }
  const { address, ...input } = options
  if (address !== undefined && (typeof address !== 'function' || address === factory))
    throw invalidOption('address', address, `forwardedAddress(1) for one proxy, or a function of ${of}`)
  return { address, input: input as unknown as Input }
}

/** Returns an address that an option found. Throws for a promise and for other values. */
export function foundAddress(given: unknown, example: string): string | undefined {
  if (typeof given === 'string') return given
  if (given === undefined || given === null) return undefined
  // An unhandled rejection of this promise would end the process.
  Promise.resolve(given).catch(() => {})
  throw new TypeError(
    `option "address" returned ${Object.prototype.toString.call(given)}. Return a string such as ${example}, not a promise`,
  )
}
