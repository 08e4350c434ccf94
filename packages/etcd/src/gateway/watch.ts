import type { Clock, TimerHandle } from '@weir/core'
import type { Link } from './link.ts'
import { readWatch, type WatchReply } from './replies.ts'

/** Milliseconds until a watch that ended is begun again. */
const RETRY = 200

/** Hears what is written, until it is closed: a watch that ends is begun again, at the member of the cluster that requests go to then. */
export class Watch {
  readonly #link: Link
  readonly #body: () => string
  readonly #heard: (reply: WatchReply) => void
  readonly #clock: Clock
  #stop: (() => void) | undefined
  #timer: TimerHandle
  #closed = false

  /**
   * @param body what it is begun with, each time
   * @param heard gets each line; one that it throws on ends the watch, which is begun again
   */
  constructor(link: Link, body: () => string, heard: (reply: WatchReply) => void) {
    this.#link = link
    this.#body = body
    this.#heard = heard
    this.#clock = link.clock
  }

  /** Begins it, also anew. */
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
