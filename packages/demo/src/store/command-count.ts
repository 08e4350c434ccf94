import { Redis } from 'ioredis'
import { UsageError } from '../errors.ts'
import { shownUrl } from './choose.ts'

/** How often the server is asked, in milliseconds. */
const POLL = 250
const CONNECT_DEADLINE = 5_000

/** Counts the commands that a Redis server executes, by its own figures; those that counting takes are not in it. */
export class CommandCount {
  readonly #client: Redis
  #total = 0
  #last: number | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(url: string) {
    this.#client = new Redis(url, {
      lazyConnect: true,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      connectTimeout: CONNECT_DEADLINE,
      retryStrategy: () => POLL,
    })
    // The server may be killed on purpose.
    this.#client.on('error', () => {})
  }

  /** @throws UsageError when there is no Redis at the URL */
  async start(url: string): Promise<void> {
    const late = new Promise<never>((_, reject) =>
      setTimeout(reject, CONNECT_DEADLINE, new Error(`no answer within ${CONNECT_DEADLINE / 1000} s`)).unref(),
    )
    try {
      await Promise.race([this.#client.connect().then(() => this.#client.ping()), late])
    } catch (error) {
      this.#client.disconnect()
      throw new UsageError(`no Redis at ${shownUrl(url)}: ${error instanceof Error ? error.message : String(error)}`)
    }
    await this.#poll()
    this.#timer = setInterval(() => void this.#poll(), POLL)
  }

  /** Commands since the start or the last reset, in every life of the server. */
  get total(): number {
    return this.#total
  }

  /** Counts from here on. */
  reset(): void {
    this.#total = 0
  }

  async #poll(): Promise<void> {
    try {
      const commands = Number(/total_commands_processed:(\d+)/.exec(await this.#client.info('stats'))?.[1])
      if (!Number.isFinite(commands)) return
      // Less than before: the server was started again, and began at 0.
      if (this.#last !== undefined) this.#total += Math.max(0, commands < this.#last ? commands : commands - this.#last - 1)
      this.#last = commands
    } catch {
      // It is away; the next poll finds out whether it is back.
    }
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#client.disconnect()
  }
}
