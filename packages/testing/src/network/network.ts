import { type Distribution, sampler } from '../random/distribution.ts'
import type { SeededRandom } from '../random/random.ts'
import type { VirtualTime } from '../time/virtual-time.ts'

/** The network between nodes and store. All times are milliseconds, all chances are in [0, 1]. */
export interface NetworkOptions {
  /** One way, each message. Default 0.5: a round trip takes 1 ms. */
  readonly latency?: Distribution
  /** So many nodes, the first that connect, are that far away instead: a region of their own. Default none. */
  readonly far?: { readonly nodes: number; readonly latency: Distribution }
  /** Announcements from the store to a node, one way. Default: as `latency`. */
  readonly announcementLatency?: Distribution
  /** Chance that a request is lost, and as well that a reply is. Default 0. */
  readonly loss?: number
  /** Chance that a reply is lost, though the store has done what it was asked for. Default: as `loss`. */
  readonly replyLoss?: number
  /** Chance that an announcement does not reach a node. Default 0; 1 for a store that can't announce. */
  readonly announcementLoss?: number
  /** Chance that a request or announcement arrives a second time, `stray` later. Default 0. */
  readonly duplication?: number
  /** Chance that a message strays: it arrives `stray` later, overtaken by others. Otherwise messages keep their order. Default 0. */
  readonly reordering?: number
  /** How much later strayed messages and duplicates arrive. Default: uniform up to 50 ms. */
  readonly stray?: Distribution
}

/** What carries messages from one end to the other, in order unless one strays. */
export class Link {
  readonly #time: VirtualTime
  readonly #random: SeededRandom
  readonly #latency: (random: SeededRandom) => number
  readonly #stray: (random: SeededRandom) => number
  readonly #loss: number
  readonly #duplication: number
  readonly #reordering: number
  #last = Number.NEGATIVE_INFINITY

  constructor(time: VirtualTime, random: SeededRandom, options: NetworkOptions, latency: Distribution, loss: number) {
    this.#time = time
    this.#random = random
    this.#latency = sampler(latency)
    this.#stray = sampler(options.stray ?? ((stream) => stream.next() * 50))
    this.#loss = loss
    this.#duplication = options.duplication ?? 0
    this.#reordering = options.reordering ?? 0
  }

  /**
   * Sends a message; `arrive` runs when it arrives: once, twice or never.
   *
   * @param extra milliseconds on top of the latency
   * @param settles whether its arrival may settle promises
   */
  send(arrive: () => void, extra = 0, settles = false): void {
    if (this.#chance(this.#loss)) return
    const now = this.#time.now
    const due = now + this.#latency(this.#random) + extra
    if (this.#chance(this.#reordering)) {
      this.#time.at(due + this.#stray(this.#random), arrive, settles)
    } else {
      this.#last = Math.max(this.#last, due)
      this.#time.at(this.#last, arrive, settles)
    }
    if (this.#chance(this.#duplication)) this.#time.at(due + this.#stray(this.#random), arrive, settles)
  }

  #chance(probability: number): boolean {
    return probability > 0 && this.#random.next() < probability
  }
}
