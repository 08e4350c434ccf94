import { type Store, WeirError } from '@weir/core'
import { connectToHub, Hub } from '@weir/core/memory'
import type {
  Announcement,
  Decide,
  Decider,
  Ordinal,
  StoreConnection,
  StoreNode,
  StorePolicy,
  SyncReply,
  SyncRequest,
  Verdict,
} from '@weir/core/sync'
import { backgroundStore, checkOptions, closedPart, invalidOption } from '@weir/core/sync'
import type { OutageMode } from '../network/fault.ts'
import { Link, type NetworkOptions } from '../network/network.ts'
import { SeededRandom } from '../random/random.ts'
import { NodeClock } from '../time/manual-clock.ts'
import type { VirtualTime } from '../time/virtual-time.ts'

/** Options of a simulated store. */
export interface SimulatedStoreOptions {
  /** Runs the store in this virtual time. */
  readonly time: VirtualTime
  /**
   * Sets the source of random numbers.
   *
   * @default a source with a fixed seed
   */
  readonly random?: SeededRandom
  /**
   * Sets the latency and the faults of the network before the store.
   *
   * @default a round trip of 1 ms, without faults
   */
  readonly network?: NetworkOptions
  /**
   * Limits how long a sync waits before it counts as failed, in milliseconds.
   *
   * @default 1000
   */
  readonly storeTimeout?: number
  /**
   * Chooses the clock whose time replies contain.
   * - `'store'`: the store's own.
   * - `'caller'`: the wall clock of the calling process, as with a store that has no clock.
   *
   * @default 'store'
   */
  readonly clock?: 'store' | 'caller'
}

const OPTIONS = ['time', 'random', 'network', 'storeTimeout', 'clock']

/** Traffic through a simulated store. */
export interface StoreStatistics {
  /** Syncs that processes sent. */
  exchanges: number
  /** Requests that the store was to decide. */
  decisions: number
  /** Syncs with a heartbeat. */
  heartbeats: number
  /** Key writes in syncs, including entries that only read. */
  entries: number
  /** Changes of blocks. */
  blocks: number
  /** Announcements that the store made, counted once before they are sent to each process. */
  announcements: number
  /** Syncs that failed for the process that sent them. */
  failures: number
}

/** Receives the keys for which processes send counts or changes of blocks, at the moment of sending. */
export type SyncObserver = (nodeId: string, sent: { readonly entries: readonly Keyed[]; readonly blocks: readonly Keyed[] }) => void

interface Keyed {
  readonly key: string
}

/**
 * A store in virtual time. It works like a real one, behind a network that delays, loses, duplicates and reorders messages, and has
 * methods for faults of a server.
 */
export class SimulatedStore implements Store {
  readonly coordinate: Store['coordinate'] = backgroundStore(this).coordinate
  readonly kind = 'simulated'
  readonly reserves = true
  readonly statistics: StoreStatistics = { exchanges: 0, decisions: 0, heartbeats: 0, entries: 0, blocks: 0, announcements: 0, failures: 0 }
  /**
   * The server's clock, correct until it is stepped. It is not rounded. Rounded to microseconds, a request very near a boundary
   * would sometimes seem to count in the wrong interval.
   */
  readonly serverClock: NodeClock
  /** Called for everything that a process sends. */
  observer: SyncObserver | undefined
  /** Called for each sync that the store has handled, at that moment. */
  handled: ((request: SyncRequest, reply: SyncReply, nodeId: string) => void) | undefined
  readonly #options: SimulatedStoreOptions
  readonly #time: VirtualTime
  readonly #random: SeededRandom
  readonly #hub: Hub
  readonly #connections = new Map<string, SimulatedConnection>()
  /** Processes in the distant region. */
  readonly #far = new Set<string>()
  readonly #partitioned = new Set<string>()
  readonly #policies = new Map<string, StorePolicy>()
  /** The deciders of the processes that opened one. */
  readonly #deciders: Promise<Decider>[] = []
  #outage: OutageMode | undefined
  #held: (() => void)[] = []
  #extra = 0
  #silent = false

  /** @throws WeirError `WEIR_INVALID_OPTION` */
  constructor(options: SimulatedStoreOptions) {
    // A clock is not a time line, but it has one as `clock.time`.
    if (typeof options?.time?.at !== 'function')
      throw invalidOption('time', options?.time, 'a VirtualTime, such as clock.time of clock = manualClock()')
    checkOptions('SimulatedStore', options, OPTIONS, 'options such as { time: clock.time }')
    this.#options = options
    this.#time = options.time
    this.#random = options.random ?? new SeededRandom('store')
    this.serverClock = new NodeClock(options.time, { resolution: 0 })
    this.#hub = new Hub(this.serverClock)
    this.#hub.listen((announcement) => this.#announce(announcement))
  }

  /** Whether the store can decide by a step. It can by any. */
  decides(): boolean {
    return true
  }

  open(node: StoreNode): StoreConnection {
    const connection = new SimulatedConnection(this, node)
    this.#connections.set(node.id, connection)
    return connection
  }

  /** Makes the store unavailable. */
  fail(mode: OutageMode = 'reject'): void {
    this.#outage = mode
  }

  /** Makes the store available again. Syncs that it kept while it hung are answered now, late. */
  restore(): void {
    this.#outage = undefined
    const held = this.#held
    this.#held = []
    for (const run of held) run()
  }

  /** Makes the store answer `extra` milliseconds later. */
  slow(extra: number): void {
    this.#extra = extra
  }

  /** Loses all data. */
  lose(): void {
    this.#hub.lose()
  }

  /** The number of cells, blocks and processes in the store. 0 after all have expired. */
  get size(): number {
    return this.#hub.size
  }

  /** Loses all announcements (true), or delivers them again. */
  silence(silent: boolean): void {
    this.#silent = silent
  }

  /** Cuts a process off from the store (true), or connects it again. */
  partition(nodeId: string, cut: boolean): void {
    if (cut) this.#partitioned.add(nodeId)
    else this.#partitioned.delete(nodeId)
  }

  /** Removes a process that ended without closing: nothing is sent to it any more. */
  sever(nodeId: string): void {
    this.#connections.delete(nodeId)
  }

  /** The length of a policy's cells in milliseconds. Undefined if no process ever sent the policy. */
  widthOf(policyId: string): number | undefined {
    return this.#policies.get(policyId)?.width
  }

  /** Units (taken less refunded) that the store has for one cell. Undefined if no process ever sent its policy. */
  total(policyId: string, key: string, ordinal: Ordinal): number | undefined {
    const policy = this.#policies.get(policyId)
    if (policy === undefined) return undefined
    const reply = this.#hub.exchange(OBSERVER, { entries: [{ policy, key, cells: [{ ordinal, taken: 0, given: 0 }] }], blocks: [] })
    const cell = reply.results[0]?.cells.find((candidate) => candidate.ordinal === ordinal)
    return cell === undefined ? 0 : cell.taken - cell.given
  }

  /** @internal Carries out one sync of a connection. */
  exchange(connection: SimulatedConnection, request: SyncRequest): Promise<SyncReply> {
    const { node } = connection
    this.#count(node.id, request)
    const copy = copyOf(request)
    const sentAt = node.clock.now()
    const handle = (): SyncReply => {
      const reply = this.#hub.exchange(node.id, copy)
      this.handled?.(copy, reply, node.id)
      return reply
    }
    return this.#carry(connection, handle, (reply) => this.#stamped(reply, sentAt, node.clock.now()))
  }

  /**
   * Waits until all processes that opened a decider can use it. Its code is loaded in real time, in which virtual time stands
   * still. Only policies with `coordination: 'central'` need it.
   */
  async opened(): Promise<void> {
    await this.#time.settled()
    await Promise.all(this.#deciders)
    await this.#time.settled()
  }

  /** @internal Opens the decider of a connection, which uses its links. */
  decider(connection: SimulatedConnection): Promise<Decider> {
    const decider = this.#decider(connection)
    this.#deciders.push(decider)
    return decider
  }

  async #decider(connection: SimulatedConnection): Promise<Decider> {
    const decider = await connectToHub(this.#hub, { ...connection.node, announced: () => {} }).decider?.()
    if (decider === undefined) throw new WeirError('WEIR_STORE_UNAVAILABLE', 'The simulated store decides nothing. Use a step that it has.')
    return {
      partOf: (id) => decider.partOf(id),
      decide: (request: Decide): Promise<readonly Verdict[] | undefined> => {
        this.statistics.decisions++
        this.observer?.(connection.node.id, { entries: request.questions, blocks: [] })
        const copy = { ...request, questions: request.questions.map((question) => ({ ...question })) }
        return this.#carry(connection, () => decider.decide(copy))
      },
    }
  }

  /** Lets the store handle a message, and carries the reply back to the process. */
  #carry<Reply>(connection: SimulatedConnection, handle: () => Reply, read = (reply: Reply) => reply): Promise<Awaited<Reply>> {
    const { node, up, down } = connection
    return new Promise((resolve, reject) => {
      let open = true
      const settle = (run: () => void): void => {
        if (!open) return
        open = false
        this.#time.cancel(storeTimeout)
        run()
      }
      const fail = (code: 'WEIR_STORE_TIMEOUT' | 'WEIR_STORE_UNAVAILABLE', message: string): void => {
        settle(() => {
          this.statistics.failures++
          reject(new WeirError(code, message))
        })
      }
      const patience = this.#options.storeTimeout ?? 1000
      const storeTimeout = this.#time.at(this.#time.now + patience, () =>
        connection.dispatch(() => fail('WEIR_STORE_TIMEOUT', `No answer within ${patience} ms.`)),
      )
      const arrive = (): void => {
        if (this.#partitioned.has(node.id) || this.#outage === 'lose') return
        if (this.#outage === 'hang') {
          this.#held.push(arrive)
          return
        }
        if (this.#outage === 'reject') {
          down.send(() => connection.dispatch(() => fail('WEIR_STORE_UNAVAILABLE', 'The store rejected the connection.')), 0, true)
          return
        }
        const reply = handle()
        down.send(
          () => {
            if (this.#partitioned.has(node.id)) return
            connection.dispatch(() => settle(() => resolve(read(reply) as Awaited<Reply>)))
          },
          this.#extra,
          true,
        )
      }
      if (!this.#partitioned.has(node.id)) up.send(arrive)
    })
  }

  /** @internal Removes a connection that was closed in order. */
  left(connection: SimulatedConnection): void {
    if (this.#connections.get(connection.node.id) !== connection) return
    this.#connections.delete(connection.node.id)
    connection.up.send(() => {
      if (this.#outage === undefined) this.#hub.leave(connection.node.id)
    })
  }

  /** @internal Makes the links of a new connection. */
  link(nodeId: string, purpose: string): Link {
    const network = this.#options.network ?? {}
    const near = network.latency ?? 0.5
    const latency = network.far !== undefined && this.#isFar(nodeId, network.far.nodes) ? network.far.latency : near
    const random = this.#random.stream(`${nodeId}/${purpose}`)
    if (purpose === 'down') return new Link(this.#time, random, network, latency, network.replyLoss ?? network.loss ?? 0)
    if (purpose !== 'announcements') return new Link(this.#time, random, network, latency, network.loss ?? 0)
    return new Link(this.#time, random, network, network.announcementLatency ?? latency, network.announcementLoss ?? 0)
  }

  #isFar(nodeId: string, nodes: number): boolean {
    if (this.#far.size < nodes) this.#far.add(nodeId)
    return this.#far.has(nodeId)
  }

  #announce(announcement: Announcement): void {
    this.statistics.announcements++
    if (this.#silent) return
    for (const [id, connection] of this.#connections) {
      if (this.#partitioned.has(id)) continue
      connection.announcements.send(() => {
        if (this.#partitioned.has(id) || this.#connections.get(id) !== connection) return
        connection.dispatch(() => connection.node.announced(announcement), false)
      })
    }
  }

  /** Replaces the time of a reply. A store without a clock can only return the time of the caller. */
  #stamped(reply: SyncReply, sentAt: number, receivedAt: number): SyncReply {
    return this.#options.clock === 'caller' ? { ...reply, time: (sentAt + receivedAt) / 2 } : reply
  }

  #count(nodeId: string, request: SyncRequest): void {
    const { statistics } = this
    statistics.exchanges++
    if (request.heartbeat !== undefined) statistics.heartbeats++
    statistics.entries += request.entries.length
    statistics.blocks += request.blocks.length
    for (const { policy } of request.entries) this.#policies.set(policy.id, policy)
    this.observer?.(nodeId, request)
  }
}

/** One process's connection: three links, and a way in that waits for the process's event loop. */
class SimulatedConnection implements StoreConnection {
  readonly node: StoreNode
  readonly up: Link
  readonly down: Link
  readonly announcements: Link
  readonly #store: SimulatedStore
  #closed = false

  constructor(store: SimulatedStore, node: StoreNode) {
    this.#store = store
    this.node = node
    this.up = store.link(node.id, 'up')
    this.down = store.link(node.id, 'down')
    this.announcements = store.link(node.id, 'announcements')
  }

  sync(request: SyncRequest): Promise<SyncReply> {
    if (this.#closed) return Promise.reject(closedPart('The connection to the store'))
    return this.#store.exchange(this, request)
  }

  decider(): Promise<Decider> {
    return this.#store.decider(this)
  }

  close(): Promise<void> {
    if (!this.#closed) this.#store.left(this)
    this.#closed = true
    return Promise.resolve()
  }

  /** Runs a callback in the process as soon as its event loop is free. */
  dispatch(run: () => void, settles = true): void {
    const { clock } = this.node
    if (clock instanceof NodeClock) clock.dispatch(run, settles)
    else run()
  }
}

/** The id under which the simulator reads from the store. It never counts as a process, because it sends no heartbeat. */
const OBSERVER = 'observer'

/** Copies a request when it is sent, because callers may reuse their arrays. */
function copyOf(request: SyncRequest): SyncRequest {
  return {
    ...request,
    entries: request.entries.map((entry) => ({ ...entry, cells: entry.cells.map((cell) => ({ ...cell })) })),
    blocks: request.blocks.map((block) => ({ ...block })),
  }
}

/**
 * A store in virtual time, for a throttler with a clock of the same time line.
 *
 * @example
 * const clock = manualClock()
 * const store = simulatedStore({ time: clock.time, network: { latency: 2 } })
 * const throttler = createThrottler({ clock, store, policies: [{ limit: 10, interval: '1s' }] })
 */
export function simulatedStore(options: SimulatedStoreOptions): SimulatedStore {
  return new SimulatedStore(options)
}
