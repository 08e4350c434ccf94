import type { RulesSource } from '@weir/core/rules'

/** A source in memory that keeps older versions. */
export class MemorySource implements RulesSource {
  readonly name = 'rules of the test'
  readonly interval = 60_000
  readonly #texts: string[] = []
  readonly #changed = new Set<() => void>()

  async read(): Promise<string | undefined> {
    return this.#texts[0]
  }

  watch(changed: () => void): () => void {
    this.#changed.add(changed)
    return () => this.#changed.delete(changed)
  }

  async history(most: number): Promise<readonly string[]> {
    return this.#texts.slice(0, most)
  }

  put(document: object): void {
    this.#texts.unshift(JSON.stringify(document))
    for (const tell of this.#changed) tell()
  }
}
