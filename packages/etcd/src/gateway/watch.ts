import type { Clock, TimerHandle } from '@weir/core'
import type { Link } from './link.ts'
import { readWatch, type WatchReply } from './replies.ts'

/** Milliseconds until a watch that ended starts again. */
const RETRY = 200

/** Receives writes until it is closed. A watch that ends starts again, at the member of the cluster that requests use then. */
export class Watch {
  readonly #link: Link
  readonly #body: () => string
  readonly #heard: (reply: WatchReply) => void
  readonly #clock: Clock
  #stop: (() => void) | undefined
  #timer: TimerHandle
  #closed = false

  /**
   * @param body makes the request for each start
   * @param heard receives each line. If it throws, the watch ends and starts again
   */
  constructor(link: Link, body: () => string, heard: (reply: WatchReply) => void) {
    this.#link = link
    this.#body = body
    this.#heard = heard
    this.#clock = link.clock
  }

  /** Starts the watch, or restarts it. */
  start(): void {
    if (this.#closed) return
    this.#stop?.()
    this.#clock.clearTimeout(this.#timer)
    this.#stop = this.#link.stream(
      '/v3/watch',
      this.#body(),
      (line) => this.#heard(readWatch(line)),
      (why) => this.#again(why),
    )
  }

  close(): void {
    this.#closed = true
    this.#stop?.()
    this.#clock.clearTimeout(this.#timer)
  }

  #again(why: Error): void {
    if (/auth token|permission|Unauthenticated/i.test(why.message)) this.#link.forgetToken()
    this.#clock.clearTimeout(this.#timer)
    this.#timer = this.#clock.setTimeout(() => this.start(), RETRY)
  }
}
