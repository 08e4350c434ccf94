/** A fingerprint of a sequence of decisions (two lanes of FNV-1a, 64 bits in all). Equal runs have equal fingerprints. */
export class Digest {
  #low = 0x811c9dc5
  #high = 0x9e3779b9

  /** @param time milliseconds, of which thousandths count */
  add(time: number, place: number, allowed: boolean): void {
    const decision = (place << 1) | (allowed ? 1 : 0)
    this.#low = Math.imul(this.#low ^ decision, 0x01000193)
    this.#high = Math.imul(this.#high ^ ((time * 1000) | 0) ^ decision, 0x01000193)
  }

  toString(): string {
    return [this.#high, this.#low].map((lane) => (lane >>> 0).toString(16).padStart(8, '0')).join('')
  }
}
