import type { Clock } from '@weir/core'
import { connectToHub, Hub } from '@weir/core/memory'
import { backgroundStore, type Decider, type Store } from '@weir/core/sync'
import type { SimulatedStore, VirtualTime } from '@weir/testing'

/** What decides about requests for all nodes of a replay. */
export class CentralSide {
  readonly #hub: Hub
  readonly #time: VirtualTime
  readonly #latency: number
  readonly #clock: Clock
  readonly #opened: Promise<Decider>[] = []
  /** Requests that the store was asked about. */
  decisions = 0

  /**
   * @param clock the store's
   * @param latency milliseconds, one way
   */
  constructor(time: VirtualTime, clock: Clock, latency: number) {
    this.#time = time
    this.#clock = clock
    this.#hub = new Hub(clock)
    this.#latency = latency
  }

  /** Loads what decides, which takes real time. */
  async load(): Promise<void> {
    await this.#deciderOf('load', this.#clock)
  }

  /** Waits until all nodes that ask have what they asked for. */
  async opened(): Promise<void> {
    await this.#time.settled()
    await Promise.all(this.#opened)
    await this.#time.settled()
  }

  /** The store as one node sees it: counts go to the simulated store, and questions here. Each node's is a value of its own. */
  storeOf(simulated: SimulatedStore): Store {
    return backgroundStore({
      kind: simulated.kind,
      decides: () => true,
      open: (node) => {
        const connection = simulated.open(node)
        return {
          sync: (request) => connection.sync(request),
          close: () => connection.close(),
          decider: () => {
            const decider = this.#deciderOf(node.id, node.clock).then((near) => this.#distant(near))
            this.#opened.push(decider)
            return decider
          },
        }
      },
    })
  }

  async #deciderOf(id: string, clock: Clock): Promise<Decider> {
    return (await connectToHub(this.#hub, { id, clock, announced: () => {} }).decider?.()) as Decider
  }

  /** Answers come a round trip later. */
  #distant(decider: Decider): Decider {
    return {
      partOf: (key) => decider.partOf(key),
      decide: (request) => {
        this.decisions++
        return new Promise((resolve, reject) => {
          this.#later(() =>
            decider.decide(request).then(
              (verdicts) => this.#later(() => resolve(verdicts)),
              (error: unknown) => this.#later(() => reject(error)),
            ),
          )
        })
      },
    }
  }

  #later(run: () => void): void {
    this.#time.at(this.#time.now + this.#latency, run)
  }
}
