/** Slots of one page. Neighbours in a table are used together, so that few pages are touched. */
const PAGE = 256

/** Values of a page, and their number. */
interface Page<Value> {
  readonly values: (Value | undefined)[]
  size: number
}

/**
 * Values for some slots of a table, beside their records. A Map that grows to a million entries is copied whole each time it doubles, which
 * blocks the event loop for tens of milliseconds. Here only a page is added.
 */
export class SlotMap<Value> {
  readonly #pages: (Page<Value> | undefined)[] = []

  get(slot: number): Value | undefined {
    return this.#pages[Math.floor(slot / PAGE)]?.values[slot % PAGE]
  }

  set(slot: number, value: Value): void {
    const number = Math.floor(slot / PAGE)
    // Without gaps, or the list would become a dictionary.
    while (this.#pages.length <= number) this.#pages.push(undefined)
    let page = this.#pages[number]
    if (page === undefined) {
      page = { values: new Array<Value | undefined>(PAGE).fill(undefined), size: 0 }
      this.#pages[number] = page
    }
    if (page.values[slot % PAGE] === undefined) page.size++
    page.values[slot % PAGE] = value
  }

  delete(slot: number): void {
    const number = Math.floor(slot / PAGE)
    const page = this.#pages[number]
    if (page?.values[slot % PAGE] === undefined) return
    page.values[slot % PAGE] = undefined
    page.size--
    if (page.size === 0) this.#pages[number] = undefined
  }
}
