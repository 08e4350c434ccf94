type Utf16 = 'utf16le'

/** The part of Node's `Buffer` that core uses: text to octets and back, so that a key keeps no longer text alive. */
export class Buffer {
  readonly #octets: Uint8Array

  private constructor(octets: Uint8Array) {
    this.#octets = octets
  }

  static allocUnsafeSlow(size: number): Buffer {
    return new Buffer(new Uint8Array(size))
  }

  static from(text: string, encoding: Utf16): Buffer {
    const made = Buffer.allocUnsafeSlow(2 * text.length)
    made.write(text, encoding)
    return made
  }

  /** Returns the number of written octets. */
  write(text: string, _encoding: Utf16): number {
    const view = new DataView(this.#octets.buffer)
    for (let index = 0; index < text.length; index++) view.setUint16(2 * index, text.charCodeAt(index), true)
    return 2 * text.length
  }

  toString(_encoding: Utf16, from = 0, until = this.#octets.length): string {
    const view = new DataView(this.#octets.buffer)
    let text = ''
    for (let at = from; at < until; at += 2) text += String.fromCharCode(view.getUint16(at, true))
    return text
  }
}
