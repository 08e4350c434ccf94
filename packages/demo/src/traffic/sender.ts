import type { DecisionReason } from '@weir/core'
import { type Dispatcher, Pool } from 'undici'
import { ARRIVED_HEADER, CLIENT_HEADER } from '../processes/messages.ts'
import { safeText } from '../view/format.ts'

/** A request to send. */
export interface Outgoing {
  readonly client: string
  readonly method: string
  readonly path: string
}

/** The outcome of one request. */
export interface Answer {
  readonly gateway: number
  readonly client: string
  /** 0 if the request failed. */
  readonly status: number
  /**
   * Time when it reached the gateway, by the gateway's clock, in milliseconds since the epoch. For a failed request, by the sender's clock.
   */
  readonly arrived: number
  /** Milliseconds by which it arrived late. */
  readonly late: number
  /** Whether the gateway decided by its share, because the store was down or its answer overdue. */
  readonly storeDown: boolean
}

/** Milliseconds. Requests here take a few milliseconds, so one without an answer by then has failed. */
const DEADLINE = 10_000
/** Connections to each gateway. More would only be opened in a burst, when opening them is most expensive. */
const CONNECTIONS = 16
/** The reason of a rejection without the store. */
const STORE_DOWN: DecisionReason = 'storeDown'
/** Characters of the longest error that is shown, because it contains a path of a log. */
const LONGEST_ERROR = 200

/** Sends requests to the gateways in turn, and reports each answer. */
export class Sender {
  readonly #pools: readonly Pool[]
  readonly #onAnswer: (answer: Answer) => void
  #next = 0
  #pending = 0
  #idle: (() => void) | undefined
  /** The first error, for the summary. */
  firstError: string | undefined

  constructor(ports: readonly number[], onAnswer: (answer: Answer) => void) {
    const options: Pool.Options = { connections: CONNECTIONS, headersTimeout: DEADLINE, bodyTimeout: DEADLINE, keepAliveTimeout: 60_000 }
    this.#pools = ports.map((port) => new Pool(`http://127.0.0.1:${port}`, options))
    this.#onAnswer = onAnswer
  }

  /** @param due planned time of its arrival, milliseconds since the epoch */
  send(request: Outgoing, due: number): void {
    const gateway = this.#next
    this.#next = (gateway + 1) % this.#pools.length
    this.#pending++
    void this.#ask(this.#pools[gateway] as Pool, request).then(({ status, arrived, storeDown }) => {
      this.#onAnswer({ gateway, client: request.client, status, arrived, late: Math.max(0, arrived - due), storeDown })
      if (--this.#pending === 0) this.#idle?.()
    })
  }

  async #ask(pool: Pool, { client, method, path }: Outgoing): Promise<Pick<Answer, 'status' | 'arrived' | 'storeDown'>> {
    try {
      // The client's name may contain any bytes of a log.
      const headers = { [CLIENT_HEADER]: encodeURIComponent(client) }
      const { statusCode: status, headers: answered, body } = await pool.request({ method: method as Dispatcher.HttpMethod, path, headers })
      const storeDown = status === 429 && (await body.text()) === STORE_DOWN
      if (status !== 429) await body.dump()
      if (status !== 429 && status >= 400) this.firstError ??= safeText(`${method} ${path}: status ${status}`, LONGEST_ERROR)
      return { status, arrived: Number(answered[ARRIVED_HEADER] ?? Date.now()), storeDown }
    } catch (error) {
      this.firstError ??= safeText(`${method} ${path}: ${error instanceof Error ? error.message : String(error)}`, LONGEST_ERROR)
      return { status: 0, arrived: Date.now(), storeDown: false }
    }
  }

  /** Waits for the missing answers. */
  async drain(): Promise<void> {
    if (this.#pending > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve
      })
    }
  }

  close(): void {
    for (const pool of this.#pools) void pool.destroy().catch(() => {})
  }
}
