import { Redis } from 'ioredis'
import { UsageError } from '../errors.ts'
import { shownUrl } from './choose.ts'

/** Milliseconds between two readings of the server's statistics. */
const POLL = 250
const CONNECT_DEADLINE = 5_000

/** Counts the commands that a Redis server executes, by its own statistics. The readings themselves are not included. */
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
    // The server may be killed on purpose, so errors are expected.
    this.#client.on('error', () => {})
  }

  /** @throws UsageError if no Redis answers at the URL */
  async start(url: string): Promise<void> {
    const late = new Promise<never>((_, reject) =>
      setTimeout(reject, CONNECT_DEADLINE, new Error(`no answer within ${CONNECT_DEADLINE / 1000} s`)).unref(),
    )
    try {
      await Promise.race([this.#client.connect().then(() => this.#client.ping()), late])
    } catch (error) {
      this.#client.disconnect()
      throw new UsageError(`Redis at ${shownUrl(url)} is unreachable: ${error instanceof Error ? error.message : String(error)}`)
    }
    await this.#poll()
    this.#timer = setInterval(() => void this.#poll(), POLL)
  }

  /** Commands since the start or the last reset, including after restarts of the server. */
  get total(): number {
    return this.#total
  }

  /** Restarts the count at 0. */
  reset(): void {
    this.#total = 0
  }

  async #poll(): Promise<void> {
    try {
      const commands = Number(/total_commands_processed:(\d+)/.exec(await this.#client.info('stats'))?.[1])
      if (!Number.isFinite(commands)) return
      // A lower number than before means that the server was restarted, and began at 0.
      if (this.#last !== undefined) this.#total += Math.max(0, commands < this.#last ? commands : commands - this.#last - 1)
      this.#last = commands
    } catch {
      // The server is down. The next reading tries again.
    }
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#client.disconnect()
  }
}
