import { type Distribution, sampler } from '../random/distribution.ts'
import type { SeededRandom } from '../random/random.ts'
import type { VirtualTime } from '../time/virtual-time.ts'

/** The network between processes and store. All times are milliseconds, all probabilities are in [0, 1]. */
export interface NetworkOptions {
  /**
   * Delays each message, one way. With the default a round trip takes 1 ms.
   *
   * @default 0.5
   */
  readonly latency?: Distribution
  /**
   * Moves the first `nodes` processes that connect to a distant region, with this latency one way.
   *
   * @default none
   */
  readonly far?: {
    /** Sets how many processes are in the distant region. */
    readonly nodes: number
    /** Delays each of their messages, one way. */
    readonly latency: Distribution
  }
  /**
   * Delays announcements from the store to a process, one way.
   *
   * @default the value of `latency`
   */
  readonly announcementLatency?: Distribution
  /**
   * Loses a request, and in the same way a reply, with this probability.
   *
   * @default 0
   */
  readonly loss?: number
  /**
   * Loses a reply with this probability, after the store has carried out the request.
   *
   * @default the value of `loss`
   */
  readonly replyLoss?: number
  /**
   * Loses an announcement with this probability. With 1 the store can't announce.
   *
   * @default 0
   */
  readonly announcementLoss?: number
  /**
   * Delivers a request or announcement a second time, `stray` later, with this probability.
   *
   * @default 0
   */
  readonly duplication?: number
  /**
   * Delays a message by `stray` with this probability, so that others overtake it. Other messages keep their order.
   *
   * @default 0
   */
  readonly reordering?: number
  /**
   * Sets how much later stray messages and duplicates arrive, in milliseconds.
   *
   * @default uniform up to 50 ms
   */
  readonly stray?: Distribution
}

/** Carries messages from one end to the other. They stay in order, except for stray ones. */
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
   * Sends a message. `arrive` runs when it arrives: once, twice or not at all.
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
