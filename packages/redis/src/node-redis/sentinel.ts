import type { Clock } from '@weir/core'
import { afterSilence } from '@weir/core/sync'
import { type Client, type ClientOptions, destroy } from './client.ts'

/** Host and port of a server, in the form of `redis`'s options. */
export interface Place {
  readonly host: string
  readonly port: number
}

/** A map from the addresses that servers report to addresses that this process can reach. */
export type AddressMap = Readonly<Record<string, Place>> | ((address: string) => Place | undefined)

/** Returns the address at which a server can be reached, for an address that it reports. */
export function reached(place: Place, map: AddressMap | undefined): Place {
  const address = `${place.host}:${place.port}`
  return (typeof map === 'function' ? map(address) : map?.[address]) ?? place
}

/**
 * Sends the same command to several servers, and returns the first usable reply. The next server is called if one fails, or is silent for
 * its part of the patience.
 *
 * @throws the last error of the servers
 */
export async function askAny<Answer>(
  places: readonly Place[],
  { clock, patience, open }: { readonly clock: Clock; readonly patience: number; open(place: Place): Client },
  command: readonly string[],
  read: (reply: unknown, place: Place) => Answer,
): Promise<Answer> {
  const clients: Client[] = []
  const ask = async (place: Place): Promise<Answer> => {
    const client = open(place)
    clients.push(client)
    client.on('error', () => {})
    client.unref()
    try {
      await client.connect()
      return read(await client.sendCommand(command), place)
    } finally {
      // This includes clients that were still connecting when another one answered, because they have a socket only now.
      destroy(client)
    }
  }
  let failure: unknown = new Error('No server answered in time.')
  const asked: Promise<Answer>[] = []
  try {
    for (const place of places) {
      const answer = ask(place)
      asked.push(answer)
      const next = pause(clock, patience / places.length)
      try {
        // A late reply of an earlier server is as good. If this server fails, the loop continues, and silent ones may still answer.
        const first = await Promise.race([Promise.any(asked), answer, next.over])
        if (first !== SILENT) return first
      } catch (error) {
        failure = error instanceof AggregateError ? error.errors.at(-1) : error
      } finally {
        next.cancel()
      }
    }
    throw failure
  } finally {
    for (const answer of asked) answer.catch(() => {})
    for (const client of clients) destroy(client)
  }
}

const SILENT = Symbol('silent')

function pause(clock: Clock, milliseconds: number): { readonly over: Promise<typeof SILENT>; cancel(): void } {
  let cancel = (): void => {}
  const over = new Promise<typeof SILENT>((resolve) => {
    cancel = afterSilence(clock, milliseconds, () => resolve(SILENT))
  })
  return { over, cancel: () => cancel() }
}

/** Reads the address of a primary from a Sentinel's reply. */
export function primaryOf(reply: unknown, name: string): Place {
  const [host, port] = Array.isArray(reply) ? (reply as unknown[]).map(String) : []
  if (host === undefined || !(Number(port) > 0)) throw new Error(`The Sentinels have no primary named ${JSON.stringify(name)}.`)
  return { host, port: Number(port) }
}

/** Returns the options of a client for one server among several. */
export function clientAt(options: ClientOptions | undefined, { host, port }: Place): ClientOptions {
  const { url: _url, ...rest } = options ?? {}
  return { ...rest, socket: { ...options?.socket, host, port } }
}
