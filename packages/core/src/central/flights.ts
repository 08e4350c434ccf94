import type { Question } from '../store/contract.ts'

/** Requests of one key that are under way at the same time at most; others wait until one of them is answered. */
const LANES = 30
const ALL: number = 2 ** LANES - 1

/** A request to the store, as far as its keys are concerned. */
export interface Flying {
  readonly questions: readonly Question[]
  /** The lane that it uses at each of its keys; -1 until it has one. */
  lane: number
  /** Its units were allowed without the store: until the store has counted them, it is asked for no more of the key. */
  owed: boolean
}

/** One key. */
interface Flight<T> {
  /** A bit for each lane in use. */
  lanes: number
  /** Requests whose units the store has to count first. */
  owed: number
  /** Requests that wait for a lane, the first one first: those whose units the store has to count first, and all others. */
  owing: Set<T> | undefined
  waiting: Set<T> | undefined
}

/**
 * The requests of each key that are under way. A store remembers the last request of each lane of a process. A lane carries one request
 * until it is known what the store did with it, so a later one never covers the traces of a request whose answer was lost.
 */
export class Flights<T extends Flying> {
  readonly #policies = new Map<string, Map<string, Flight<T>>>()
  readonly #send: (item: T) => void

  /** @param send sends a request that has waited */
  constructor(send: (item: T) => void) {
    this.#send = send
  }

  /** Finds a lane for a request; false if it must wait for one, and is sent later. */
  begin(item: T): boolean {
    const { questions } = item
    let used = 0
    for (const { policy, key } of questions) {
      const flight = this.#policies.get(policy.id)?.get(key)
      if (flight === undefined) continue
      used |= flight.lanes
      if (flight.lanes === ALL || (flight.owed > 0 && !item.owed)) return wait(flight, item)
    }
    // The lowest lane that is free at all of its keys.
    const bit = ~used & (used + 1)
    if ((bit & ALL) === 0) {
      // At a key where some lane will end.
      const busy = questions.find(({ policy, key }) => (this.#policies.get(policy.id)?.get(key)?.lanes ?? 0) !== 0)
      return wait(this.#of(busy as Question), item)
    }
    item.lane = 31 - Math.clz32(bit)
    for (const question of questions) this.#of(question).lanes |= bit
    return true
  }

  /** The store has to count the units of a request. */
  owe(item: T): void {
    item.owed = true
    for (const question of item.questions) this.#of(question).owed++
  }

  /** It is known what the store did with a request, or nobody will know it. */
  end(item: T): void {
    const { questions, lane, owed } = item
    if (lane < 0 && !owed) return
    item.lane = -1
    item.owed = false
    for (const question of questions) {
      const flight = this.#of(question)
      if (lane >= 0) flight.lanes &= ~(1 << lane)
      if (owed) flight.owed--
      this.#serve(flight)
      if (flight.lanes === 0 && flight.owed === 0 && flight.waiting === undefined) this.#forget(question)
    }
  }

  #serve(flight: Flight<T>): void {
    this.#serveSome(flight, 'owing')
    if (flight.owed === 0) this.#serveSome(flight, 'waiting')
  }

  #serveSome(flight: Flight<T>, which: 'owing' | 'waiting'): void {
    const items = flight[which]
    let left = items?.size ?? 0
    if (items === undefined || left === 0) return
    for (const item of items) {
      if (flight.lanes === ALL || left-- === 0) return
      items.delete(item)
      if (items.size === 0) flight[which] = undefined
      this.#send(item)
      if (which === 'waiting' && flight.owed > 0) return
    }
  }

  #of({ policy: { id }, key }: Question): Flight<T> {
    let keys = this.#policies.get(id)
    if (keys === undefined) this.#policies.set(id, (keys = new Map()))
    let flight = keys.get(key)
    if (flight === undefined) keys.set(key, (flight = { lanes: 0, owed: 0, owing: undefined, waiting: undefined }))
    return flight
  }

  #forget({ policy: { id }, key }: Question): void {
    const keys = this.#policies.get(id)
    keys?.delete(key)
    if (keys?.size === 0) this.#policies.delete(id)
  }
}

function wait<T extends Flying>(flight: Flight<T>, item: T): false {
  const which = item.owed ? 'owing' : 'waiting'
  flight[which] ??= new Set()
  flight[which].add(item)
  return false
}
