import type { TimerHandle } from '@weir/core'
import type { Link, LinkOptions } from '../connection/link.ts'
import { slotOf } from '../keys/slots.ts'
import { run, type Script, type ScriptRunner } from '../scripts/script.ts'
import type { Client } from './client.ts'
import { Connection } from './connection.ts'
import { type AddressMap, askAny, type Place, reached } from './sentinel.ts'
import { subscription } from './server-link.ts'

/** The nodes of a Cluster, and the way to connect to them. */
export interface ClusterPlaces {
  /** The startup nodes, which report the primaries. */
  readonly seeds: readonly Place[]
  client(place: Place, timeout: number): Client
  readonly map: AddressMap | undefined
}

/** The most redirections of a command whose slot moves. */
const REDIRECTIONS = 6

/** Milliseconds until the primaries are looked up again after an error. */
const LOOK_AGAIN = 500

/**
 * The connections of one process to the primaries of a Cluster, and another for announcements. The link looks up slots itself, because the
 * connections of the client's own cluster keep a process alive, wait longer with each attempt, and can't be closed when they hang.
 */
export class ClusterLink implements Link {
  heardAt: number = Number.NEGATIVE_INFINITY
  readonly #places: ClusterPlaces
  readonly #options: LinkOptions
  readonly #connections = new Map<string, Connection>()
  readonly #subscriber: Connection | undefined
  readonly #runner: ScriptRunner
  /** Slots by hash tag. */
  readonly #slots = new Map<string, number>()
  #ranges: readonly Range[] = []
  #looking: Promise<void> | undefined
  #again: TimerHandle | undefined
  #first: Promise<void> | undefined
  #held = 0
  /** The place of the node to query first. */
  #turn = 0
  #closed = false
  #lastError: unknown

  constructor(places: ClusterPlaces, options: LinkOptions) {
    const { clock, timeout, channel, received } = options
    this.#places = places
    this.#options = options
    this.#runner = {
      evalsha: (sha, count, ...args) => this.#command(args[0] as string, 'EVALSHA', sha, String(count), ...args),
      eval: (source, count, ...args) => this.#command(args[0] as string, 'EVAL', source, String(count), ...args),
    }
    this.#first = this.#look().then(async () => {
      await Promise.all([...this.#connections.values()].map((connection) => connection.connected()))
    })
    if (channel === undefined) return
    let turn = Math.floor(Math.random() * 1000)
    this.#subscriber = new Connection({
      clock,
      patience: timeout,
      make: async () => {
        if (this.#ranges.length === 0) await this.#look()
        // Every node receives all messages. If a node is down, the next attempt uses another one.
        const range = this.#ranges[turn++ % this.#ranges.length]
        if (range === undefined) throw this.#lastError ?? new Error('not connected')
        return places.client(range.place, timeout)
      },
      opened: subscription(channel, clock, received),
    })
  }

  get ready(): boolean {
    for (const connection of this.#connections.values()) if (connection.ready) return true
    return false
  }

  get lastError(): unknown {
    for (const { lastError } of this.#connections.values()) if (lastError !== undefined) return lastError
    return this.#lastError
  }

  async connected(): Promise<boolean> {
    await this.#first
    if (!this.ready) await Promise.all([...this.#connections.values()].map((connection) => connection.connected()))
    return this.ready
  }

  async replaced(key: string): Promise<boolean> {
    return (await this.#connectionOf(key)?.replaced()) === true
  }

  run(script: Script, keys: readonly string[], argument: string): Promise<unknown> {
    return run(this.#runner, script, keys, argument)
  }

  call({ sha }: Script, keys: number, args: readonly string[]): Promise<unknown> {
    return this.#runner.evalsha(sha, keys, ...args)
  }

  send({ source }: Script, keys: number, args: readonly string[]): Promise<unknown> {
    return this.#runner.eval(source, keys, ...args)
  }

  remove(key: string, member: string): Promise<unknown> {
    return this.#command(key, 'ZREM', key, member)
  }

  silent(long: boolean): void {
    if (long) for (const connection of this.#connections.values()) connection.renew()
    void this.#look()
  }

  hold(): void {
    this.#held++
    for (const connection of this.#connections.values()) connection.hold()
  }

  release(): void {
    this.#held--
    for (const connection of this.#connections.values()) connection.release()
  }

  close(): void {
    this.#closed = true
    if (this.#again !== undefined) this.#options.clock.clearTimeout(this.#again)
    for (const connection of this.#connections.values()) connection.close()
    this.#subscriber?.close()
  }

  async #command(key: string, ...command: readonly string[]): Promise<unknown> {
    let connection = this.#connectionOf(key)
    let asking = false
    for (let redirected = 0; ; redirected++) {
      if (connection === undefined) {
        this.#lookAgain()
        throw this.#lastError ?? new Error('A slot has no known primary.')
      }
      try {
        return await (asking ? connection.ask(...command) : connection.command(...command))
      } catch (error) {
        const to = error instanceof Error ? /^(MOVED|ASK) \d+ (.*):(\d+)$/.exec(error.message) : null
        if (to === null || redirected === REDIRECTIONS) {
          if (!connection.ready) this.#lookAgain()
          throw error
        }
        asking = to[1] === 'ASK'
        if (!asking) this.#lookAgain(0)
        // A node that does not have its own name sends an empty one.
        const place = to[2] === '' ? undefined : reached({ host: to[2] as string, port: Number(to[3]) }, this.#places.map)
        connection = place === undefined ? undefined : this.#connectionTo(place)
        await connection?.connected()
      }
    }
  }

  #connectionOf(key: string): Connection | undefined {
    const open = key.indexOf('{') + 1
    const tag = key.slice(open, key.indexOf('}', open))
    let slot = this.#slots.get(tag)
    if (slot === undefined) this.#slots.set(tag, (slot = slotOf(tag)))
    for (const { from, to, place } of this.#ranges) if (slot >= from && slot <= to) return this.#connectionTo(place)
    return undefined
  }

  #connectionTo(place: Place): Connection {
    const address = addressOf(place)
    let connection = this.#connections.get(address)
    if (connection === undefined) {
      const { clock, timeout } = this.#options
      connection = new Connection({
        clock,
        patience: timeout,
        make: () => this.#places.client(place, timeout),
        lost: () => this.#lookAgain(),
      })
      for (let held = 0; held < this.#held; held++) connection.hold()
      this.#connections.set(address, connection)
    }
    return connection
  }

  #lookAgain(delay: number = LOOK_AGAIN): void {
    if (this.#closed || this.#again !== undefined) return
    this.#again = this.#options.clock.setTimeout(() => {
      this.#again = undefined
      void this.#look()
    }, delay)
  }

  /** Looks up the primaries of the slots. It never rejects. */
  #look(): Promise<void> {
    this.#looking ??= this.#lookUp().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #lookUp(): Promise<void> {
    if (this.#closed) return
    const { clock, timeout } = this.#options
    const { map, seeds, client } = this.#places
    // Uses new connections, because one of those in use may hang. Each look-up begins with another node, because a node may be cut off from
    // the others.
    const all = [...new Map([...this.#ranges.map(({ place }) => place), ...seeds].map((place) => [addressOf(place), place])).values()]
    const first = this.#turn++ % all.length
    try {
      const ranges = await askAny(
        [...all.slice(first), ...all.slice(0, first)],
        { clock, patience: timeout, open: (place) => client(place, timeout) },
        ['CLUSTER', 'SLOTS'],
        (reply, place) => rangesOf(reply, map, place),
      )
      if (this.#closed) return
      this.#ranges = ranges
      const addresses = new Set(ranges.map(({ place }) => addressOf(place)))
      for (const [address, connection] of this.#connections) {
        if (addresses.has(address)) continue
        connection.close()
        this.#connections.delete(address)
      }
      for (const { place } of ranges) this.#connectionTo(place)
    } catch (error) {
      this.#lastError = error
      this.#lookAgain()
    }
  }
}

/** Slots that a primary has. */
interface Range {
  readonly from: number
  readonly to: number
  readonly place: Place
}

function addressOf({ host, port }: Place): string {
  return `${host}:${port}`
}

/** Reads the ranges of slots and their primaries from a node's reply. An empty name means the node that was queried. */
function rangesOf(reply: unknown, map: AddressMap | undefined, asked: Place): readonly Range[] {
  const ranges: Range[] = []
  for (const range of Array.isArray(reply) ? (reply as unknown[]) : []) {
    const [from, to, primary] = range as [unknown, unknown, unknown]
    const [host, port] = (Array.isArray(primary) ? primary : []) as unknown[]
    const named = typeof host === 'string' && host !== '' ? host : asked.host
    if (typeof from !== 'number' || typeof to !== 'number' || !(Number(port) > 0)) continue
    ranges.push({ from, to, place: reached({ host: named, port: Number(port) }, map) })
  }
  if (ranges.length === 0) throw new Error('The Cluster lists no primaries.')
  return ranges
}
