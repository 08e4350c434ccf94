import { Presets, SingleBar } from 'cli-progress'
import type { Stream } from './output.ts'

/** Milliseconds between two updates of a progress bar. */
const EVERY = 200

/** The progress of a long task, on a terminal. Elsewhere it writes nothing. */
export class Progress {
  readonly #bar: SingleBar | undefined
  #next = 0

  /** @param total undefined if it is unknown. The bar then shows only the work done */
  constructor(stream: Stream, total: number | undefined) {
    if (stream.isTTY !== true) return
    const format = total === undefined ? '{requests} requests' : '{bar} {percentage} %  {requests} requests  {eta_formatted} left'
    this.#bar = new SingleBar(
      { format, stream: stream as NodeJS.WriteStream, hideCursor: true, clearOnComplete: true, barsize: 30, stopOnComplete: false },
      Presets.shades_classic,
    )
    this.#bar.start(total ?? 1, 0, { requests: 0 })
  }

  /** @param state called only when the bar is updated */
  look(state: () => { readonly done: number; readonly requests: string }): void {
    if (this.#bar === undefined || performance.now() < this.#next) return
    this.#next = performance.now() + EVERY
    const { done, requests } = state()
    this.#bar.update(done, { requests })
  }

  /** Removes the bar from the screen. */
  stop(): void {
    this.#bar?.stop()
  }
}
