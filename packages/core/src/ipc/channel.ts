import type { Announcement } from '../store/contract.ts'
import { readMessage } from './check.ts'
import { type IpcMessage, seal, unpackVerdicts } from './envelope.ts'

/** The reference counter that Node.js itself uses for listeners. All versions have it, but the types don't. */
interface CountedChannel {
  refCounted?(): void
  unrefCounted?(): void
}

/** One throttler that uses the channel to the parent process. */
export interface ChannelUser {
  readonly node: string
  /** Receives the answer to a question: a reply, verdicts, or entries of the audit log. */
  replied(id: number, reply: unknown): void
  announced(announcement: Announcement): void
  /** Called when the channel has closed for good. */
  disconnected(): void
}

/**
 * This process's channel to its parent, shared by its throttlers: one listener for messages, and one for the end. The channel keeps the
 * process alive only while a question is unanswered. The user's own listeners keep it alive as usual.
 */
class ParentChannel {
  readonly #users = new Map<string, ChannelUser>()

  get open(): boolean {
    return process.send !== undefined && process.connected
  }

  join(user: ChannelUser): void {
    if (this.#users.size === 0) {
      process.on('message', this.#received)
      process.on('disconnect', this.#disconnected)
      // Each of the two listeners took a reference.
      this.release()
      this.release()
    }
    this.#users.set(user.node, user)
  }

  leave(user: ChannelUser): void {
    if (!this.#users.delete(user.node) || this.#users.size > 0) return
    this.hold()
    this.hold()
    process.off('message', this.#received)
    process.off('disconnect', this.#disconnected)
  }

  /** @param failed - called if the message could not be sent */
  send(message: IpcMessage, failed: () => void): void {
    try {
      process.send?.(seal(message), undefined, {}, (error) => {
        if (error !== null) failed()
      })
    } catch {
      // The channel closes at this moment, or the user's code has replaced `send`.
      failed()
    }
  }

  hold(): void {
    ;(process.channel as CountedChannel | undefined)?.refCounted?.()
  }

  release(): void {
    ;(process.channel as CountedChannel | undefined)?.unrefCounted?.()
  }

  readonly #received = (value: unknown): void => {
    const message = readMessage(value)
    switch (message?.kind) {
      case 'reply':
        this.#users.get(message.node)?.replied(message.id, message.reply)
        break
      case 'verdicts':
        this.#users.get(message.node)?.replied(message.id, unpackVerdicts(message.verdicts))
        break
      case 'audited':
        this.#users.get(message.node)?.replied(message.id, message.entries)
        break
      case 'failure':
        this.#users.get(message.node)?.replied(message.id, new Error(message.message))
        break
      case 'announcement':
        for (const user of this.#users.values()) user.announced(message.announcement)
        break
    }
  }

  readonly #disconnected = (): void => {
    for (const user of [...this.#users.values()]) user.disconnected()
  }
}

export const parentChannel: ParentChannel = new ParentChannel()
