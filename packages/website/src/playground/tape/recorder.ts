import { createThrottler } from '@weir/core'
import {
  type Announcement,
  backgroundStore,
  type Cell,
  type MeetingPoint,
  type StoreConnection,
  type StoreNode,
  type SyncReply,
  type SyncRequest,
} from '@weir/core/sync'
import { type NodeContext, type NodeDecision, type Scenario, type SimulatedNode, uniform, type VirtualTime } from '@weir/testing'
import { KIND, type Tape } from './tape.ts'

interface Message {
  readonly sent: number
  handled: number
  arrived: number
  readonly node: number
  readonly kind: number
  total: number
}

/** Records the events of a simulation without changing them. All decisions are the same with and without it. */
export class Recorder {
  /** The scenario to run. */
  readonly scenario: Scenario
  readonly #times: number[] = []
  readonly #nodes: number[] = []
  readonly #allowed: number[] = []
  readonly #went: number[] = []
  readonly #messages: Message[] = []
  readonly #states: { time: number; node: number; storeDown: boolean }[] = []
  readonly #handled = new WeakMap<object, number>()
  readonly #oneWay: number
  #time: VirtualTime | undefined

  /** @param oneWay - milliseconds from the store to each process. It determines when an announcement was sent */
  constructor(scenario: Scenario, oneWay: number) {
    this.#oneWay = oneWay
    const { balancing = uniform } = scenario
    this.scenario = {
      ...scenario,
      balancing: {
        name: balancing.name,
        start: (context) => {
          const pick = balancing.start(context)
          return (nodes, time, key) => {
            const node = pick(nodes, time, key)
            this.#times.push(time)
            this.#nodes.push(node)
            this.#allowed.push(0)
            return node
          }
        },
      },
      node: (context) => this.#node(context),
      handled: (_node, _request, reply) => this.#handled.set(reply, this.#now()),
    }
  }

  /** The events that were recorded until a time. */
  tape(until: number): Tape {
    const messages = this.#messages.filter(({ sent }) => sent >= 0 && sent < until).sort((one, other) => one.sent - other.sent)
    const column = (pick: (message: Message) => number) => Float64Array.from(messages, pick)
    return {
      requests: { time: Float64Array.from(this.#times), node: Uint8Array.from(this.#nodes), allowed: Uint8Array.from(this.#allowed) },
      messages: {
        sent: column(({ sent }) => sent),
        handled: column(({ handled }) => handled),
        arrived: column(({ arrived }) => arrived),
        node: Uint8Array.from(messages, ({ node }) => node),
        kind: Uint8Array.from(messages, ({ kind }) => kind),
        total: column(({ total }) => total),
      },
      states: this.#states.filter(({ time }) => time < until),
    }
  }

  /** Times of the allowed requests including waits, in milliseconds, in order. */
  get went(): readonly number[] {
    return this.#went
  }

  #now(): number {
    return this.#time?.now ?? 0
  }

  /** A process with the released code, and a recorder around its store. */
  #node({ policy, store, clock, random, place, time }: NodeContext): SimulatedNode {
    this.#time = time
    const looked = backgroundStore(this.#looked(store, place))
    const throttler = createThrottler({ ...this.scenario.throttler, policies: [policy], store: looked, clock, random })
    throttler.on('storeDown', () => this.#states.push({ time: time.now, node: place, storeDown: true }))
    throttler.on('storeUp', () => this.#states.push({ time: time.now, node: place, storeDown: false }))
    throttler.on('warning', () => {})
    const noted = (index: number, decision: NodeDecision): NodeDecision => {
      if (!decision.allowed) return decision
      this.#allowed[index] = 1
      this.#went.push(time.now)
      return decision
    }
    return {
      get nodeId() {
        return throttler.nodeId
      },
      check: (key, cost) => noted(this.#times.length - 1, throttler.check(key, cost)),
      checkAsync: (key, cost) => {
        const index = this.#times.length - 1
        return throttler.checkAsync(key, cost).then((decision) => noted(index, decision))
      },
      start: () => throttler.start(),
      close: () => throttler.close(),
    }
  }

  #looked(store: MeetingPoint, place: number): MeetingPoint {
    return {
      kind: store.kind,
      open: (node) => this.#connection(store, node, place),
    }
  }

  #connection(store: MeetingPoint, node: StoreNode, place: number): StoreConnection {
    const connection = store.open({
      id: node.id,
      clock: node.clock,
      announced: (announcement) => {
        this.#heard(announcement, place)
        node.announced(announcement)
      },
    })
    return {
      sync: (request) => this.#sync(connection, request, place),
      close: () => connection.close(),
    }
  }

  #sync(connection: StoreConnection, request: SyncRequest, node: number): Promise<SyncReply> {
    const kind = request.entries.length > 0 ? KIND.sync : KIND.heartbeat
    const never = Number.POSITIVE_INFINITY
    const message: Message = { sent: this.#now(), handled: never, arrived: never, node, kind, total: Number.NaN }
    this.#messages.push(message)
    const reply = connection.sync(request)
    reply.then(
      (answer) => {
        message.arrived = this.#now()
        message.handled = this.#handled.get(answer) ?? message.arrived
        message.total = newestOf(answer.results[0]?.cells ?? [])
      },
      () => {},
    )
    return reply
  }

  #heard(announcement: Announcement, node: number): void {
    const time = this.#now()
    const total = announcement.type === 'total' ? newestOf(announcement.cells) : Number.NaN
    const sent = time - this.#oneWay
    this.#messages.push({ sent, handled: sent, arrived: time, node, kind: KIND.announcement, total })
  }
}

/** Units of the newest cell. NaN without cells. */
function newestOf(cells: readonly Cell[]): number {
  let newest = cells[0]
  for (const cell of cells) if (newest !== undefined && cell.ordinal > newest.ordinal) newest = cell
  return newest === undefined ? Number.NaN : newest.taken - newest.given
}
