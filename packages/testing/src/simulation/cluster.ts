import { createThrottler } from '@weir/core'
import type { Fault } from '../network/fault.ts'
import type { SeededRandom } from '../random/random.ts'
import type { SimulatedStore } from '../stores/simulated-store.ts'
import { NodeClock } from '../time/manual-clock.ts'
import type { VirtualTime } from '../time/virtual-time.ts'
import { ClusterNode } from './cluster-node.ts'
import { mayWait, type NodeContext, type Scenario, type SimulatedNode } from './scenario.ts'

export interface ClusterOptions {
  readonly scenario: Scenario
  readonly time: VirtualTime
  readonly random: SeededRandom
  readonly store: SimulatedStore
  /** The policy's interval, in milliseconds. */
  readonly interval: number
  /** Called after a process has started or left. */
  readonly changed: () => void
}

/** The processes of a simulation, and their faults. */
export class Cluster {
  /** The processes that get requests, by place. */
  readonly nodes: ClusterNode[] = []
  readonly #options: ClusterOptions
  #started = 0

  constructor(options: ClusterOptions) {
    this.#options = options
  }

  /** Starts the first processes, spread over `within` milliseconds from now on. */
  boot(count: number, within: number): void {
    const random = this.#options.random.stream('boot')
    for (let place = 0; place < count; place++) {
      this.#options.time.at(this.#options.time.now + random.next() * within, () => this.#start(place))
    }
  }

  /** Plans faults. */
  plan(faults: readonly Fault[]): void {
    for (const fault of faults) this.#plan(fault)
  }

  /** Stops everything immediately. No timer is left. */
  stop(): void {
    for (const node of this.nodes) node?.clock.stop()
  }

  #start(place: number): void {
    const { scenario, time, random, store } = this.#options
    const stream = random.stream(`node ${this.#started++}`)
    const clock = new NodeClock(time, { origin: stream.next() * 1e6, ...scenario.clocks?.(place, stream.stream('clock')) })
    const draws = stream.stream('throttler')
    const context: NodeContext = { policy: scenario.policy, store, clock, random: () => draws.next(), place, time }
    const limiter = scenario.node?.(context) ?? throttlerOf(context, scenario)
    limiter.start?.()
    this.nodes[place] = new ClusterNode(place, clock, limiter, scenario.shortcut ?? !mayWait(scenario.policy))
    this.#options.changed()
  }

  /** Closes a process in order. Its clock continues until the process has sent its counts. */
  #close(node: ClusterNode): void {
    const stop = (): void => node.clock.stop()
    node.limiter.close().then(stop, stop)
  }

  #crash(node: ClusterNode): void {
    node.clock.stop()
    this.#options.store.sever(node.limiter.nodeId)
  }

  #scale(count: number): void {
    while (this.nodes.length > count) this.#close(this.nodes.pop() as ClusterNode)
    for (let place = this.nodes.length; place < count; place++) this.#start(place)
    this.#options.changed()
  }

  #at(position: number, run: () => void): void {
    this.#options.time.at(position * this.#options.interval, run)
  }

  #plan(fault: Fault): void {
    const { store, interval } = this.#options
    const during = (span: { readonly from: number; readonly until: number }, begin: () => void, end: () => void): void => {
      this.#at(span.from, begin)
      this.#at(span.until, end)
    }
    const withNode = (place: number, run: (node: ClusterNode) => void): void => {
      const node = this.nodes[place]
      if (node !== undefined) run(node)
    }
    switch (fault.kind) {
      case 'outage':
        during(
          fault,
          () => store.fail(fault.mode),
          () => store.restore(),
        )
        break
      case 'slow-store':
        during(
          fault,
          () => store.slow(fault.extra),
          () => store.slow(0),
        )
        break
      case 'silence':
        during(
          fault,
          () => store.silence(true),
          () => store.silence(false),
        )
        break
      case 'data-loss':
        this.#at(fault.at, () => store.lose())
        break
      case 'store-clock':
        this.#at(fault.at, () => store.serverClock.step(fault.step))
        break
      case 'node-clock':
        this.#at(fault.at, () => withNode(fault.node, (node) => node.clock.step(fault.step)))
        break
      case 'partition': {
        let cut = ''
        during(
          fault,
          () =>
            withNode(fault.node, (node) => {
              cut = node.limiter.nodeId
              store.partition(cut, true)
            }),
          () => store.partition(cut, false),
        )
        break
      }
      case 'stall':
        this.#at(fault.from, () => withNode(fault.node, (node) => node.clock.stall(fault.until * interval)))
        break
      case 'crash':
      case 'restart':
        this.#at(fault.at, () =>
          withNode(fault.node, (node) => {
            if (fault.kind === 'crash') this.#crash(node)
            else this.#close(node)
            this.#start(node.place)
          }),
        )
        break
      case 'scale':
        this.#at(fault.at, () => this.#scale(fault.nodes))
        break
    }
  }
}

/** The default process: a throttler of `@weir/core`, the code that ships. */
function throttlerOf(context: NodeContext, scenario: Scenario): SimulatedNode {
  const { policy, store, clock, random } = context
  const throttler = createThrottler({ ...scenario.throttler, policies: [policy], store, clock, random })
  // Simulated outages are intended. The listener prevents a process warning.
  throttler.on('storeDown', () => {})
  // Too few units for many processes are intended, too.
  throttler.on('warning', () => {})
  return throttler
}
