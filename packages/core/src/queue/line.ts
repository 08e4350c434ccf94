import { Chain, type Link } from './chain.ts'
import type { Wanted } from './options.ts'
import type { Timed } from './schedule.ts'

/** What a queue reads of a decision. */
export interface Answer {
  readonly allowed: boolean
  readonly retryAfter: number
  readonly delay: number
  readonly remaining: number
  readonly key: string
  readonly policy: { readonly name: string } | undefined
  readonly parts: readonly { readonly key: string; readonly policy: { readonly name: string } | undefined }[]
}

/** One request that waits. `at` is when its time is over; once it is `held`, when it goes. */
export class Request<D extends Answer> implements Link<Request<D>>, Timed {
  before: Request<D> | undefined
  after: Request<D> | undefined
  at: number
  place = -1
  readonly key: string
  readonly wanted: Wanted
  /** Requests come in this order. */
  readonly number: number
  readonly resolve: (decision: D) => void
  readonly reject: (error: unknown) => void
  /** The others that wait for its key: while it waits, or the store is being asked for it. */
  line: Line<D> | undefined
  /** Whether the store is being asked for it. */
  asked = false
  /** What refused it last. */
  refused: D | undefined
  /** It was let in, and keeps a pace: of which counter. */
  held: D | undefined
  heldBy: string | undefined
  onAbort: (() => void) | undefined
  /** Whether it counts among those that wait. */
  entered = false
  settled = false

  constructor(key: string, wanted: Wanted, number: number, now: number, resolve: (decision: D) => void, reject: (error: unknown) => void) {
    this.key = key
    this.wanted = wanted
    this.number = number
    this.at = now + wanted.timeout
    this.resolve = resolve
    this.reject = reject
  }
}

/** The requests of one priority that wait for a key. */
class Level<D extends Answer> extends Chain<Request<D>> {
  readonly priority: number
  /** Of those that say what they cost. */
  units = 0
  /** Those that don't. */
  unsaid = 0

  constructor(priority: number) {
    super()
    this.priority = priority
  }
}

/** The requests that wait for one key: those of the highest priority first, and of these the first that came. */
export class Line<D extends Answer> implements Link<Line<D>> {
  before: Line<D> | undefined
  after: Line<D> | undefined
  readonly key: string
  /** What it waits for. */
  counter: Counter<D> | undefined
  /** Requests in it, those included that the store is being asked for. */
  size = 0
  /** Highest first. */
  #levels: readonly Level<D>[] = []

  constructor(key: string) {
    this.key = key
  }

  /** The one that goes next. */
  get first(): Request<D> | undefined {
    for (const { first } of this.#levels) if (first !== undefined) return first
    return undefined
  }

  /** Puts a request to the end of those of its priority; one that was asked for goes back to its place. */
  add(request: Request<D>): void {
    const level = this.#level(request.wanted.priority)
    count(level, request, 1)
    let next: Request<D> | undefined
    if (level.last !== undefined && level.last.number > request.number) {
      next = level.first
      while (next !== undefined && next.number < request.number) next = next.after
    }
    level.insert(request, next)
  }

  remove(request: Request<D>): void {
    const level = this.#level(request.wanted.priority)
    count(level, request, -1)
    level.remove(request)
  }

  /** What those want that a request of this priority has to wait for: units where they say so, else requests. */
  ahead(priority: number): { units: number; requests: number } {
    const ahead = { units: 0, requests: 0 }
    for (const level of this.#levels) {
      if (level.priority < priority) break
      ahead.units += level.units
      ahead.requests += level.unsaid
    }
    return ahead
  }

  #level(priority: number): Level<D> {
    const levels = this.#levels
    let at = 0
    while (at < levels.length && (levels[at] as Level<D>).priority > priority) at++
    const found = levels[at]
    if (found?.priority === priority) return found
    const made = new Level<D>(priority)
    // A copy has no spare room: many keys may wait.
    this.#levels = levels.toSpliced(at, 0, made)
    return made
  }
}

function count<D extends Answer>(level: Level<D>, { wanted: { cost } }: Request<D>, sign: 1 | -1): void {
  if (cost === undefined) level.unsaid += sign
  else level.units += sign * cost
}

/**
 * A counter of a policy that refused requests, and the keys whose requests wait for it, one after another: several keys where the
 * policy counts them together. `at` is when it has room for the first of them.
 */
export class Counter<D extends Answer> implements Timed {
  at = 0
  place = -1
  readonly id: string
  readonly lines: Chain<Line<D>> = new Chain()
  /** Requests that the store is being asked for. */
  asked = 0

  constructor(id: string) {
    this.id = id
  }
}

/** Names the counter of a policy that decided about a key. */
export function counterId({ policy, key }: Pick<Answer, 'policy' | 'key'>): string {
  return `${policy?.name}\u0000${key}`
}
