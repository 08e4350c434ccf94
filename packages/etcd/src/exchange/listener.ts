import type { Announcement } from '@weir/core/sync'
import type { Link } from '../gateway/link.ts'
import { watchOf } from '../gateway/operations.ts'
import type { WatchReply } from '../gateway/replies.ts'
import { Watch } from '../gateway/watch.ts'

/**
 * Receives the announcements of other processes. If its watch ends, the next one continues where it ended, so no announcement is missed
 * that etcd still has.
 */
export class Listener {
  readonly #watch: Watch
  readonly #own: string
  readonly #announced: (announcement: Announcement) => void
  #closed = false
  /** The next revision to receive. */
  #next: number | undefined

  /** @param own the key of this process's own announcements, which are ignored */
  constructor(link: Link, prefix: string, own: string, announced: (announcement: Announcement) => void) {
    this.#watch = new Watch(
      link,
      () => watchOf(prefix, this.#next),
      (reply) => this.#hear(reply),
    )
    this.#own = own
    this.#announced = announced
  }

  start(): void {
    this.#watch.start()
  }

  /** Watches from the current revision. After etcd lost data its revisions start again, so the next revision may be far in the future. */
  beginAnew(): void {
    this.#next = undefined
    this.start()
  }

  close(): void {
    this.#closed = true
    this.#watch.close()
  }

  #hear({ revision, held, canceled, compacted, reason }: WatchReply): void {
    if (canceled) {
      // The revision from which it would continue was compacted. The announcements in between are lost, as announcements may be.
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

/** Returns the entries of a list. Any other value comes from another program. The receiver checks the entries. */
function announcementsOf(value: string): readonly Announcement[] {
  try {
    const list: unknown = JSON.parse(value)
    return Array.isArray(list) ? list : []
  } catch {
    return []
  }
}
