import { createHash } from 'node:crypto'
import { anyReadings, type RequestReader } from '@weir/core/adapter'
import { addresses as addressList } from '@weir/core/http'
import type { LogRecord } from '../log/record.ts'

/** Every address, in any spelling and with a port, as adapters read them. */
const ANY = addressList('0.0.0.0/0', '::/0')

/** Reads logged requests as adapters read those of their frameworks. A log knows no routes. */
export const logReader: RequestReader<LogRecord> = Object.freeze({
  method: (record: LogRecord) => record.method,
  path: (record: LogRecord) => record.target,
  readings: anyReadings,
  route: () => undefined,
  ip: ({ client }: LogRecord) => (ANY.includes(client) ? client : addressOf(client)),
  header: (record: LogRecord, name: string) => record.field(name),
})

/** Names that are told again when their key is. */
const MOST_NAMES = 100_000
const names = new Map<string, string>()
/** Addresses of clients by name. */
const addresses = new Map<string, string>()

/**
 * Logs may have host names in place of addresses, and adapters never see those: they count all that is no address by one key. Each name stands
 * for a network of its own, out of those that nobody has (RFC 4193).
 */
function addressOf(name: string): string {
  const known = addresses.get(name)
  if (known !== undefined) return known
  const hash = createHash('sha1').update(name).digest()
  // Groups without leading zeros: there is one way only to write them.
  const groups = [0, 2, 4].map((at) => (hash.readUInt16BE(at) | 0x1000).toString(16))
  const network = `fd${hash.toString('hex', 6, 7)}:${groups.join(':')}::`
  if (addresses.size < MOST_NAMES) {
    const copy = Buffer.from(name).toString()
    addresses.set(copy, network)
    names.set(`${network}/64`, copy)
  }
  return network
}

/** A key as people know it: the name that an address stands for. */
export function shownKey(key: string): string {
  return names.get(key) ?? key
}
