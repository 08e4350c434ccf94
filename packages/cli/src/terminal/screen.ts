import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Stream } from './output.ts'

/** Enters the alternate screen, so that the earlier content stays, hides the cursor, and turns off line wrapping. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
const HOME = '\x1b[H'
const REST_OF_LINE = '\x1b[K'
const REST_OF_SCREEN = '\x1b[J'

/** Shows live output in place, until the user ends it. */
export class Screen {
  readonly #out: Stream & { readonly rows?: number }
  readonly #in: Readable & { setRawMode?: (raw: boolean) => unknown; readonly isTTY?: boolean }

  constructor(out: Stream, input: Readable) {
    this.#out = out
    this.#in = input
  }

  /** Redraws until `q`, Ctrl+C or Escape is pressed, or the process gets a signal to end. Rejects if `frame` rejects. */
  async live(every: number, frame: () => Promise<readonly string[]>): Promise<void> {
    const ended = new AbortController()
    const end = (): void => ended.abort()
    const pressed = (piece: Buffer | string): void => {
      if (['q', 'Q', '\x03', '\x1b'].includes(String(piece))) end()
    }
    const raw = this.#in.isTTY === true && this.#in.setRawMode !== undefined
    const leave = (): void => void this.#out.write(LEAVE)
    process.once('SIGINT', end)
    process.once('SIGTERM', end)
    // Restores the terminal, however the process ends.
    process.once('exit', leave)
    if (raw) this.#in.setRawMode?.(true)
    this.#in.on('data', pressed)
    this.#out.write(ENTER)
    try {
      while (!ended.signal.aborted) {
        const lines = (await frame()).slice(0, Math.max(1, (this.#out.rows ?? 24) - 1))
        this.#out.write(`${HOME}${lines.map((line) => line + REST_OF_LINE).join('\r\n')}${REST_OF_SCREEN}`)
        await sleep(every, undefined, { signal: ended.signal }).catch(() => {})
      }
    } finally {
      if (raw) this.#in.setRawMode?.(false)
      this.#in.off('data', pressed)
      this.#in.pause()
      process.off('SIGINT', end)
      process.off('SIGTERM', end)
      process.off('exit', leave)
      leave()
    }
  }
}
