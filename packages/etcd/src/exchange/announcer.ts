import type { Announcement } from '@weir/core/sync'
import type { Expiry } from '../gateway/expiry.ts'
import type { Link } from '../gateway/link.ts'
import { type Operation, put } from '../gateway/operations.ts'
import type { Mark } from '../records/records.ts'

/**
 * The most announcements of one write, and the most that wait for the next. Further ones are dropped, because announcements may be lost.
 */
const MOST_TOGETHER = 500
const MOST_WAITING = 10_000
/** The most keys that one write marks. */
const MOST_MARKS = 100
/** How long the last announcements of a process stay in etcd, in milliseconds. Watches receive them immediately. */
const LIFE = 60_000

/** Sends announcements to other processes. One write runs at a time, and announcements that arrive meanwhile share the next one. */
export class Announcer {
  readonly #link: Link
  readonly #expiry: Expiry
  readonly #name: string
  #waiting: Announcement[] = []
  #marks = new Map<string, Mark>()
  #writing: Promise<void> | undefined

  /** @param name the key that it writes, which other processes watch */
  constructor(link: Link, expiry: Expiry, name: string) {
    this.#link = link
    this.#expiry = expiry
    this.#name = name
  }

  /** @param marks keys near their limits, for processes that start later */
  announce(announcement: Announcement, marks: readonly Mark[] = []): void {
    if (this.#waiting.length < MOST_WAITING) this.#waiting.push(announcement)
    for (const mark of marks) if (this.#marks.size < MOST_WAITING) this.#marks.set(mark.name, mark)
    this.#begin()
  }

  /**
   * Writes the waiting announcements, and marks that could not be written before. Resolves after the write.
   *
   * @param tries how often it tries to write marks
   */
  async settled(tries: number = 1): Promise<void> {
    for (let tried = 0; tried < tries; tried++) {
      this.#begin()
      if (this.#writing === undefined) return
      await this.#writing
    }
  }

  #begin(): void {
    if (this.#waiting.length === 0 && this.#marks.size === 0) return
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
  }

  async #write(): Promise<void> {
    // Waits for the other announcements of this turn, to send them in the same write.
    await Promise.resolve()
    while (this.#waiting.length > 0 || this.#marks.size > 0) {
      const announcements = this.#waiting.splice(0, MOST_TOGETHER)
      const marks = [...this.#marks.values()].slice(0, MOST_MARKS)
      for (const { name } of marks) this.#marks.delete(name)
      try {
        await this.#expiry.renewing(async () => this.#link.transact(await this.#operations(announcements, marks)))
      } catch {
        // Announcements may be lost. A mark must not: without it a process that starts would allow a full key its limit once more.
        this.#waiting = []
        for (const mark of marks) if (!this.#marks.has(mark.name)) this.#marks.set(mark.name, mark)
        return
      }
    }
  }

  async #operations(announcements: readonly Announcement[], marks: readonly Mark[]): Promise<Operation[]> {
    const of = async ({ name, value, life }: Mark): Promise<Operation> => put(name, value, await this.#expiry.leaseFor(life))
    const own: Mark[] = announcements.length === 0 ? [] : [{ name: this.#name, value: JSON.stringify(announcements), life: LIFE }]
    return Promise.all([...marks, ...own].map(of))
  }
}
