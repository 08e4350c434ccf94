import { createHash } from 'node:crypto'
import { anyReadings, type RequestReader } from '@weir/core/adapter'
import { addresses as addressList } from '@weir/core/http'
import type { LogRecord } from '../log/record.ts'

/** All addresses, in any spelling and with a port, as adapters read them. */
const ANY = addressList('0.0.0.0/0', '::/0')

/** Reads logged requests like adapters read requests of their frameworks. A log contains no routes. */
export const logReader: RequestReader<LogRecord> = Object.freeze({
  method: (record: LogRecord) => record.method,
  path: (record: LogRecord) => record.target,
  readings: anyReadings,
  route: () => undefined,
  ip: ({ client }: LogRecord) => (ANY.includes(client) ? client : addressOf(client)),
  header: (record: LogRecord, name: string) => record.field(name),
})

/** The most host names that are remembered, so that reports can show them. */
const MOST_NAMES = 100_000
const names = new Map<string, string>()
/** Addresses of clients by name. */
const addresses = new Map<string, string>()

/**
 * Maps a host name to an address. Logs may contain host names, but adapters count all clients without a valid address as one key.
 * Each name gets its own network of the private range of RFC 4193.
 */
function addressOf(name: string): string {
  const known = addresses.get(name)
  if (known !== undefined) return known
  const hash = createHash('sha1').update(name).digest()
  // Groups without leading zeros, because an address must have only one spelling.
  const groups = [0, 2, 4].map((at) => (hash.readUInt16BE(at) | 0x1000).toString(16))
  const network = `fd${hash.toString('hex', 6, 7)}:${groups.join(':')}::`
  if (addresses.size < MOST_NAMES) {
    const copy = Buffer.from(name).toString()
    addresses.set(copy, network)
    names.set(`${network}/64`, copy)
  }
  return network
}

/** The key for a report: the host name, if an address stands for it. */
export function shownKey(key: string): string {
  return names.get(key) ?? key
}
