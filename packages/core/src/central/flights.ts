import type { Question } from '../store/contract.ts'
import { alike, equal, joins } from './joined.ts'

/** The most requests of one key in flight. Others wait until one of them is answered, and are sent together. */
const LANES = 30
const ALL: number = 2 ** LANES - 1
const NONE: readonly never[] = Object.freeze([])

/** A request to the store, as far as its keys are concerned. */
export interface Flying {
  readonly questions: readonly Question[]
  /** Infinity if no request waits for its answer. */
  readonly storeTimeout: number
  /** Whether it need not be sent any more. */
  readonly gone: boolean
  /** The lane that it uses at each of its keys. -1 until it has one. */
  lane: number
  /** Its units were allowed without the store: until the store has counted them, no other request of the key is sent. */
  owed: boolean
}

/** One key. */
interface Flight<T> {
  /** A bit for each lane in use. */
  lanes: number
  /** The lane that was taken last, if it is still in use. Otherwise -1. */
  newest: number
  /** The lane that must be free before waiting requests are sent, because its answer shows more about the remaining units. */
  fence: number
  /** Requests whose units the store must count first. */
  owed: number
  /**
   * Requests that wait for a lane, in this order: requests whose units the store must count before any other, requests with a waiting
   * caller, and other reports.
   */
  owing: Set<T> | undefined
  waiting: Set<T> | undefined
  telling: Set<T> | undefined
}

/**
 * The requests of each key in flight. A store remembers the last request of each lane of a process. A lane carries one request until its
 * effect on the store is known, so a later one never hides the traces of a request whose answer was lost.
 *
 * Requests that have waited are sent together. Each free lane takes half of the waiting ones, and the next lane half of the rest. However
 * many units the store has left, some of these halves use them up, so all equal requests are decided in one round trip.
 */
export class Flights<T extends Flying> {
  readonly #policies = new Map<string, Map<string, Flight<T>>>()
  readonly #send: (item: T, others: readonly T[]) => void

  /** @param send sends a request that has waited and now has a lane, together with others */
  constructor(send: (item: T, others: readonly T[]) => void) {
    this.#send = send
  }

  /** Finds a lane for a request. Returns false if the request must wait for one. Then it is sent later. */
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
      // Wait at a key that has a lane in use, which will end.
      const busy = questions.find(({ policy, key }) => (this.#policies.get(policy.id)?.get(key)?.lanes ?? 0) !== 0)
      return wait(this.#of(busy as Question), item)
    }
    item.lane = 31 - Math.clz32(bit)
    for (const question of questions) {
      const flight = this.#of(question)
      flight.lanes |= bit
      flight.newest = item.lane
    }
    return true
  }

  /** Whether all lanes of a key are in use. */
  full({ policy, key }: Question): boolean {
    return this.#policies.get(policy.id)?.get(key)?.lanes === ALL
  }

  /** Marks a request whose units the store must count. */
  owe(item: T): void {
    if (item.owed) return
    item.owed = true
    for (const question of item.questions) this.#of(question).owed++
  }

  /** Removes and returns the waiting requests that equal a request which the store has just rejected, because it would reject them too. */
  sameAs(item: T): readonly T[] {
    const [question] = item.questions
    const waiting = question && this.#policies.get(question.policy.id)?.get(question.key)?.waiting
    if (waiting === undefined) return NONE
    const same: T[] = []
    for (const one of waiting) if (!one.gone && equal(one, item)) same.push(one)
    for (const one of same) waiting.delete(one)
    return same
  }

  /** Makes requests wait again that were sent together but did not all fit. They wait until the requests sent after them are answered. */
  again(items: readonly T[], lane: number): void {
    const [question] = items[0]?.questions ?? []
    if (question === undefined) return
    const flight = this.#of(question)
    flight.waiting = new Set([...items, ...(flight.waiting ?? [])])
    if (flight.newest !== lane) flight.fence = flight.newest
  }

  /** Frees the lane of a request whose effect on the store is known, or will stay unknown. */
  end(item: T): void {
    const { questions, lane, owed } = item
    if (lane < 0 && !owed) return
    item.lane = -1
    item.owed = false
    for (const question of questions) {
      const flight = this.#of(question)
      if (lane >= 0) {
        flight.lanes &= ~(1 << lane)
        if (flight.newest === lane) flight.newest = -1
        if (flight.fence === lane) flight.fence = -1
      }
      if (owed) flight.owed--
      this.#serve(flight)
      if (flight.lanes === 0 && flight.owed === 0 && !flight.waiting?.size && !flight.telling?.size) this.#forget(question)
    }
  }

  #serve(flight: Flight<T>): void {
    this.#serveSome(flight, flight.owing, () => true)
    this.#serveSome(flight, flight.waiting, () => flight.owed === 0 && flight.fence < 0)
    this.#serveSome(flight, flight.telling, () => flight.owed === 0)
  }

  #serveSome(flight: Flight<T>, items: Set<T> | undefined, may: () => boolean): void {
    let left = items?.size ?? 0
    if (items === undefined || left === 0) return
    for (const item of items) {
      if (flight.lanes === ALL || left-- <= 0 || !may()) return
      items.delete(item)
      if (!item.gone && this.begin(item)) this.#send(item, items === flight.waiting ? half(items, item) : NONE)
    }
  }

  #of({ policy: { id }, key }: Question): Flight<T> {
    let keys = this.#policies.get(id)
    if (keys === undefined) this.#policies.set(id, (keys = new Map()))
    let flight = keys.get(key)
    if (flight === undefined) {
      flight = { lanes: 0, newest: -1, fence: -1, owed: 0, owing: undefined, waiting: undefined, telling: undefined }
      keys.set(key, flight)
    }
    return flight
  }

  #forget({ policy: { id }, key }: Question): void {
    const keys = this.#policies.get(id)
    keys?.delete(key)
    if (keys?.size === 0) this.#policies.delete(id)
  }
}

function wait<T extends Flying>(flight: Flight<T>, item: T): false {
  const which = item.owed ? 'owing' : item.storeTimeout < Number.POSITIVE_INFINITY ? 'waiting' : 'telling'
  flight[which] ??= new Set()
  flight[which].add(item)
  return false
}

/**
 * Takes the requests to send with `first` out of the waiting ones: half of all, as far as they are alike. At least as many remain. So if
 * the store rejects any, its last rejection is of a single request, and that verdict applies to all others.
 */
function half<T extends Flying>(items: Set<T>, first: T): readonly T[] {
  let more = Math.floor((items.size + 1) / 2) - 1
  if (more <= 0 || !joins(first)) return NONE
  const others: T[] = []
  for (const item of items) {
    if (more-- === 0) break
    if (!item.gone && (!joins(item) || !alike(item, first))) break
    items.delete(item)
    if (!item.gone) others.push(item)
  }
  return others
}
