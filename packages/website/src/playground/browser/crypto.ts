import { sha256 } from '@noble/hashes/sha2'

/** SHA-256 with the interface of `node:crypto`. Core hashes keys that are too long. */
export function createHash(_algorithm: 'sha256'): Hash {
  return new Hash()
}

class Hash {
  readonly #hash = sha256.create()

  update(data: string | Uint8Array, encoding: 'utf8' | 'utf16le' = 'utf8'): this {
    if (typeof data !== 'string') this.#hash.update(data)
    else this.#hash.update(encoding === 'utf8' ? new TextEncoder().encode(data) : utf16(data))
    return this
  }

  digest(_encoding: 'base64url'): string {
    return btoa(String.fromCharCode(...this.#hash.digest()))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replaceAll('=', '')
  }
}

function utf16(text: string): Uint8Array {
  const view = new DataView(new ArrayBuffer(2 * text.length))
  for (let index = 0; index < text.length; index++) view.setUint16(2 * index, text.charCodeAt(index), true)
  return new Uint8Array(view.buffer)
}
