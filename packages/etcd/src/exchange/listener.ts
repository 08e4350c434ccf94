import type { Clock, TimerHandle } from '@weir/core'
import type { Announcement } from '@weir/core/sync'
import type { Link } from '../gateway/link.ts'
import { watchOf } from '../gateway/operations.ts'
import { readWatch } from '../gateway/replies.ts'

/** Milliseconds until a watch that ended is begun again. */
const RETRY = 200

/** Hears what other nodes announce: a watch that is begun again where it ended, so that nothing is missed that etcd still has. */
export class Listener {
  readonly #link: Link
  readonly #prefix: string
  readonly #own: string
  readonly #announced: (announcement: Announcement) => void
  readonly #clock: Clock
  #stop: (() => void) | undefined
  #timer: TimerHandle
  #closed = false
  /** The next revision to hear of. */
  #next: number | undefined

  /** @param own name of what this node announces itself */
  constructor(link: Link, prefix: string, own: string, announced: (announcement: Announcement) => void) {
    this.#link = link
    this.#prefix = prefix
    this.#own = own
    this.#announced = announced
    this.#clock = link.clock
  }

  start(): void {
    if (this.#closed) return
    this.#stop?.()
    this.#clock.clearTimeout(this.#timer)
    const body = watchOf(this.#prefix, this.#next)
    this.#stop = this.#link.stream(
      '/v3/watch',
      body,
      (line) => this.#hear(line),
      (why) => this.#again(why),
    )
  }

  /** From now on, as the revision to go on from may lie far in the future: etcd has lost data, and counts anew. */
  beginAnew(): void {
    this.#next = undefined
    this.start()
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

  #hear(line: unknown): void {
    const { revision, held, canceled, compacted, reason } = readWatch(line)
    if (canceled) {
      // What it would go on from was compacted away: what was announced meanwhile is lost, as announcements may be.
      if (compacted > 0) this.#next = compacted
      throw new Error(reason)
    }
    this.#next = revision + 1
    for (const { name, value } of held) {
      if (this.#closed) return
      if (name !== this.#own) for (const one of announcementsOf(value)) this.#announced(one)
    }
  }
}

/** What is no list is not ours; what is in it is checked by whoever hears it. */
function announcementsOf(value: string): readonly Announcement[] {
  try {
    const list: unknown = JSON.parse(value)
    return Array.isArray(list) ? list : []
  } catch {
    return []
  }
}
