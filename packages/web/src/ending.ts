import { EventEmitter } from 'node:events'

/** Stands for the response of Node.js if a platform has none: it ends with the body of a `Response`, or when the client disconnects. */
export class Ending extends EventEmitter {
  readonly #request: Request
  /** Whether anything has waited for the end, e.g. a delayed request. */
  listens = false
  ended = false
  /** Names as in `ServerResponse`. */
  readonly headersSent = false
  writableEnded = false
  statusCode = 500

  constructor(request: Request) {
    super()
    this.#request = request
  }

  override on(event: string, listener: (...args: unknown[]) => void): this {
    // Reading the signal costs time, and most requests need no end.
    if (!this.listens) {
      this.listens = true
      const { signal } = this.#request
      // Later, so that all listeners that are added together are called.
      if (signal.aborted) queueMicrotask(() => this.end(false))
      else signal.addEventListener('abort', () => this.end(false), { once: true })
    }
    return super.on(event, listener)
  }

  get destroyed(): boolean {
    return this.ended || this.#request.signal.aborted
  }

  /** Whether something still waits for the end. */
  get awaited(): boolean {
    return this.listenerCount('close') > 0
  }

  /** @param complete whether the whole response was sent */
  end(complete: boolean): void {
    if (this.ended) return
    this.ended = true
    this.writableEnded = complete
    if (complete) this.emit('finish')
    this.emit('close')
  }

  /** Does nothing: only a platform can end a connection. */
  destroy(): void {}

  /** Ends with the body of a response. The returned response has the same pieces, at the pace of its reader. */
  follow(response: Response): Response {
    this.statusCode = response?.status ?? 101
    // A server drops the body of an answer to HEAD without reading it.
    if (isSwitch(response) || response.body === null || this.#request.method === 'HEAD') {
      this.end(true)
      return response
    }
    const reader = response.body.getReader()
    const followed = new ReadableStream(
      {
        pull: async (controller) => {
          try {
            const { done, value } = await reader.read()
            if (!done) return controller.enqueue(value)
            controller.close()
            this.end(true)
          } catch (error) {
            controller.error(error)
            this.end(false)
          }
        },
        cancel: (reason) => {
          this.end(false)
          return reader.cancel(reason)
        },
      },
      { highWaterMark: 0 },
    )
    return new Response(followed, response)
  }
}

/** Whether a handler gives its connection to another protocol. In Workers the response carries a `webSocket`, in Bun there is none. */
export function isSwitch(response: Response | null | undefined): boolean {
  return !response || response.status === 101 || Boolean((response as { webSocket?: unknown }).webSocket)
}

/** Whether the platform reports clients that leave before their response. Workers do so only with a flag. */
export function reportsClients(): boolean {
  const { Cloudflare } = globalThis as {
    readonly Cloudflare?: { readonly compatibilityFlags?: { readonly enable_request_signal?: boolean } }
  }
  return Cloudflare?.compatibilityFlags?.enable_request_signal !== false
}
