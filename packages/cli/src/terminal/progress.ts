import { Presets, SingleBar } from 'cli-progress'
import type { Stream } from './output.ts'

/** Between two looks of a progress bar, in milliseconds. */
const EVERY = 200

/** How far a long work has got, on a terminal; elsewhere nothing is written. */
export class Progress {
  readonly #bar: SingleBar | undefined
  #next = 0

  /** @param total undefined where it is not known: then only what is done is shown */
  constructor(stream: Stream, total: number | undefined) {
    if (stream.isTTY !== true) return
    const format = total === undefined ? '{requests} requests' : '{bar} {percentage} %  {requests} requests  {eta_formatted} left'
    this.#bar = new SingleBar(
      { format, stream: stream as NodeJS.WriteStream, hideCursor: true, clearOnComplete: true, barsize: 30, stopOnComplete: false },
      Presets.shades_classic,
    )
    this.#bar.start(total ?? 1, 0, { requests: 0 })
  }

  /** @param state asked for now and then only */
  look(state: () => { readonly done: number; readonly requests: string }): void {
    if (this.#bar === undefined || performance.now() < this.#next) return
    this.#next = performance.now() + EVERY
    const { done, requests } = state()
    this.#bar.update(done, { requests })
  }

  /** Nothing is left of it on the screen. */
  stop(): void {
    this.#bar?.stop()
  }
}
