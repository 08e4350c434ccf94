import type { Outcome } from '../runs/run.ts'
import type { Settings } from '../settings/settings.ts'
import type { Answer, Question } from './protocol.ts'

/** Runs scenes in a worker. A new run ends the previous one. */
export class Runner {
  readonly #make: () => Worker
  #worker: Worker | undefined
  #busy = false
  #asked = 0

  constructor(make: () => Worker) {
    this.#make = make
  }

  /**
   * The outcome for some settings and access logs. The promise never settles if another run starts before.
   *
   * @throws Error (rejects) with the error of the run
   */
  run(settings: Settings, logs: readonly Blob[]): Promise<Outcome> {
    if (this.#busy) this.close()
    const worker = (this.#worker ??= this.#make())
    const id = ++this.#asked
    this.#busy = true
    return new Promise((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Answer>) => {
        if (data.id !== this.#asked) return
        this.#busy = false
        if ('outcome' in data) resolve(data.outcome)
        else reject(new Error(data.error))
      }
      worker.onerror = ({ message }) => {
        this.close()
        reject(new Error(message))
      }
      const question: Question = { id, settings, logs }
      worker.postMessage(question)
    })
  }

  close(): void {
    this.#worker?.terminate()
    this.#worker = undefined
    this.#busy = false
  }
}
