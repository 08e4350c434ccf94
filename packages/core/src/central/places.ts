import type { Verdict } from '../store/contract.ts'

/** For so long is trusted what the store said of places, in milliseconds: others may have given some back. */
export const TRUST = 1_000

/** Who asks the store about a key. Times in milliseconds. */
export interface PlacesHost {
  readonly roundTrip: number
  now(): number
  /** What is in the key's bucket now; undefined where the store does not answer. */
  look(): Promise<Pick<Verdict, 'resetAfterMs'> | undefined>
  /** The last units of the bucket come back, which would have been in it until then. */
  giveBack(units: number, until: number, now: number): void
  /** All that could come back has. */
  done(): void
}

/** Units that go no more, and when they would have. */
interface Free {
  readonly place: number
  readonly units: number
}

/** Units of one key that the store has counted ahead for this node. Times are of the monotonic clock. */
export class KeyPlaces {
  /** Until when it is trusted what the store said last. */
  #trusted = 0
  /** Until when the last of the units stay in the bucket, and for how long after they go. */
  #end = 0
  #after = 0
  /** When the store told so. */
  #toldAt = Number.NEGATIVE_INFINITY
  #free: Free[] = []
  #looking = false

  /** Whether units are coming back: what is counted ahead meanwhile would lie behind them, and keep them from that. */
  get busy(): boolean {
    return this.#looking
  }

  trusts(now: number): boolean {
    return now < this.#trusted
  }

  /** The store has told how much is in the bucket. `own` is until when places of this node are used. */
  heard(own: number, now: number): void {
    this.#trusted = Math.max(own, now + TRUST)
  }

  /** It has counted units, of which the last stay until `end` and go at `place`. */
  counted(end: number, place: number, now: number): void {
    this.#end = end
    this.#toldAt = now
    if (place > now) this.#after = end - place
  }

  /**
   * Units go no more. They come back as long as nobody has places behind them: else others would get places there, and with those behind them
   * that were more than the pace.
   *
   * @param each milliseconds between two units
   */
  free(free: Free, each: number, host: PlacesHost): void {
    const now = host.now()
    this.#trusted = Math.min(this.#trusted, now + TRUST)
    this.#free.push(free)
    if (this.#looking) return
    this.#looking = true
    // What nobody takes of an answer that has just come lies last.
    const looked = now === this.#toldAt ? Promise.resolve({ resetAfterMs: this.#end - now }) : host.look().catch(() => undefined)
    // Those that leave at the same moment come back together.
    void looked.then((verdict) => {
      this.#looking = false
      this.#comeBack(verdict, each, host)
      host.done()
    })
  }

  #comeBack(verdict: Pick<Verdict, 'resetAfterMs'> | undefined, each: number, host: PlacesHost): void {
    const free = this.#free.sort((a, b) => b.place - a.place)
    this.#free = []
    const now = host.now()
    if (verdict === undefined || now + verdict.resetAfterMs > this.#end + Math.max(each / 2, host.roundTrip)) return
    let back = 0
    for (const { place, units } of free) {
      if (place + this.#after < this.#end - each / 2 - ROUNDED) break
      back += units
      this.#end -= units * each
    }
    if (back > 0) host.giveBack(back, this.#end, now)
  }
}

/** Times are told in whole milliseconds. */
const ROUNDED = 1
