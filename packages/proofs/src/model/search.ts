/** The way to a state. */
export interface Path {
  readonly before: Path | undefined
  readonly step: string
}

/** The space of a search: states, and the events that are possible in each. */
export interface Model<World extends { readonly path: Path }> {
  readonly first: World
  /** Returns all states that may come next. */
  successors(world: World): readonly World[]
  /** Returns the fault of a state, or undefined if there is none. */
  fault(world: World): string | undefined
  /** Returns a state as text. States with the same future have the same text. */
  key(world: World): string
}

/** The result of a search. */
export interface Found {
  /** The number of different states. */
  readonly states: number
  /** Steps from one state to another. */
  readonly steps: number
  /** Whether the search checked every state. */
  readonly whole: boolean
  /** The fault and the path to it. Undefined if there is none. */
  readonly fault: string | undefined
  readonly path: readonly string[]
}

/**
 * Checks every state that can be reached, each once.
 *
 * @param most - the number of states after which it ends
 */
export function search<World extends { readonly path: Path }>(
  model: Model<World>,
  most: number = Number.POSITIVE_INFINITY,
  told: (states: number) => void = () => {},
): Found {
  const seen = new Seen()
  const { first } = model
  seen.add(model.key(first))
  let open: World[] = [first]
  let steps = 0
  // The search is breadth-first, so the first fault has the shortest path.
  while (open.length > 0) {
    const later: World[] = []
    for (const world of open) {
      for (const next of model.successors(world)) {
        steps++
        if (!seen.add(model.key(next))) continue
        const fault = model.fault(next)
        if (fault !== undefined) return { states: seen.size, steps, whole: false, fault, path: pathOf(next.path) }
        if (seen.size >= most) return { states: seen.size, steps, whole: false, fault: undefined, path: [] }
        if (seen.size % 1_000_000 === 0) told(seen.size)
        later.push(next)
      }
    }
    open = later
  }
  return { states: seen.size, steps, whole: true, fault: undefined, path: [] }
}

function pathOf(path: Path): readonly string[] {
  const steps: string[] = []
  for (let at: Path | undefined = path; at !== undefined; at = at.before) steps.push(at.step)
  return steps.reverse()
}

/**
 * A set of states, by 53 bits of a hash of each, so that a state needs only a few bytes. Among ten million states the chance that
 * two share a hash is one in two hundred. The later one would then not be checked.
 */
class Seen {
  size = 0
  #slots = new Float64Array(1 << 20)

  /** Adds a state. Returns false if it is already in the set. */
  add(text: string): boolean {
    if (!this.#put(this.#slots, hashOf(text))) return false
    this.size++
    if (2 * this.size > this.#slots.length) {
      const larger = new Float64Array(2 * this.#slots.length)
      for (const hash of this.#slots) if (hash !== 0) this.#put(larger, hash)
      this.#slots = larger
    }
    return true
  }

  #put(slots: Float64Array, hash: number): boolean {
    const mask = slots.length - 1
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const there = slots[at]
      if (there === hash) return false
      if (there !== 0) continue
      slots[at] = hash
      return true
    }
  }
}

/** Two hashes of 32 bits (FNV-1a, and a variant with another prime and rotated characters), together cut to 53 bits. Never 0. */
function hashOf(text: string): number {
  let one = 0x811c9dc5
  let two = 0x2545f491
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    one = Math.imul(one ^ code, 0x01000193)
    two = Math.imul((two << 5) ^ (two >>> 27) ^ code, 0x9e3779b1)
  }
  one = Math.imul(one ^ (one >>> 15), 0x85ebca6b)
  one ^= one >>> 13
  return (two >>> 11) * 0x1_0000_0000 + (one >>> 0) + 1
}
