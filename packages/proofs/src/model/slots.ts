import {
  askFor,
  beginAnew,
  grantLease,
  HELD,
  hearReply,
  heldOf,
  isOver,
  type Lease,
  type LeaseRecord,
  type LeaseRow,
  newLease,
  newLeaseRecord,
  newLeaseRow,
  surrender,
  takeLease,
} from '@weir/core/leases'
import type { LeaseAsk, LeaseReply } from '@weir/core/sync'
import type { Model, Path } from './search.ts'

/** The space of a search: all events of processes with requests in flight, with a bounded number of messages in flight at once. */
export interface SlotOptions {
  readonly nodes: number
  readonly limit: number
  /** Messages in flight at once: requests for leases and replies. */
  readonly messages: number
  /** Processes that crash and restart as new ones. */
  readonly crashes: number
  /** Requests that start. */
  readonly starts: number
  /** Moments that pass. */
  readonly moments: number
  /** Moments for which the store keeps the slots of a silent process. */
  readonly lifetime: number
}

/** Clocks of processes are wrong, and run a little fast, see the model of intervals. */
const OFFSET = 1_000
const PACE = 1.0002

interface Ask {
  readonly ask: LeaseAsk
  readonly sent: number
}

interface Answer extends Ask {
  readonly reply: LeaseReply
}

/** A process: its lease, until it crashes, and its messages in flight. */
interface Party {
  readonly lease: Lease | undefined
  readonly asks: readonly Ask[]
  readonly answers: readonly Answer[]
}

interface World {
  readonly parties: readonly Party[]
  readonly record: LeaseRecord
  readonly time: number
  readonly crashes: number
  readonly starts: number
  /** The number of leases so far, which is the incarnation of the next one. */
  readonly begun: number
  readonly wrong: string | undefined
  readonly path: Path
}

const WISHES = [
  { name: 'tells', first: 0, waiting: 0, ahead: 0 },
  { name: 'waits for one slot', first: 1, waiting: 1, ahead: 0 },
  { name: 'wants two ahead', first: 0, waiting: 0, ahead: 2 },
] as const

/** A model of slots that processes lease: slots return when requests end, and the store keeps only those of live processes. */
export function slotModel(options: SlotOptions): Model<World> {
  return new SlotModel(options)
}

class SlotModel implements Model<World> {
  readonly #options: SlotOptions
  readonly first: World

  constructor(options: SlotOptions) {
    const { nodes, limit, crashes, starts } = options
    this.#options = options
    this.first = {
      parties: Array.from({ length: nodes }, (_, id) => ({ lease: newLease(HELD, id, limit), asks: [], answers: [] })),
      record: newLeaseRecord(),
      time: 0,
      crashes,
      starts,
      begun: nodes,
      wrong: undefined,
      path: { before: undefined, step: 'start' },
    }
  }

  successors(world: World): readonly World[] {
    const { limit, messages, moments } = this.#options
    const next: World[] = []
    const clock = clockAt(world)
    const underWay = world.parties.reduce((sum, { asks, answers }) => sum + asks.length + answers.length, 0)
    const change = (at: number, step: string, party: Partial<Party>, more: Partial<World> = {}): void => {
      const parties = world.parties.with(at, { ...(world.parties[at] as Party), ...party })
      next.push({ ...world, parties, ...more, path: { before: world.path, step: `node ${at}: ${step}` } })
    }
    for (const [at, { lease, asks, answers }] of world.parties.entries()) {
      for (const [i, message] of asks.entries()) {
        const rest = asks.toSpliced(i, 1)
        const { record, answer } = this.#answer(world, lease, message)
        change(at, 'an ask is lost', { asks: rest })
        change(at, 'an ask arrives', { asks: rest, answers: [...answers, ...answer] }, { record })
        if (underWay < messages) change(at, 'an ask arrives and will again', { answers: [...answers, ...answer] }, { record })
      }
      if (lease === undefined) continue
      for (const [i, message] of answers.entries()) {
        const rest = answers.toSpliced(i, 1)
        const { ask, reply, sent } = message
        const heard = edited(lease, (mine) => hearReply(mine, ask, reply, sent, clock, 0))
        change(at, 'an answer is lost', { answers: rest })
        change(at, 'an answer arrives', { lease: heard, answers: rest })
        change(at, 'an answer arrives and will again', { lease: heard })
      }
      if (lease.taken > lease.given) change(at, 'a request ends', { lease: { ...lease, given: lease.given + 1 } })
      if (world.crashes > 0) {
        const party = { lease: newLease(HELD, world.begun, limit), asks: [], answers: [] }
        change(at, 'crashes and comes back', { lease: undefined, answers: [] })
        const crashed = next.pop() as World
        next.push({ ...crashed, parties: [...crashed.parties, party], crashes: world.crashes - 1, begun: world.begun + 1 })
      }
      const busier = { ...lease }
      if (world.starts > 0 && takeLease(busier, 1, clock)) {
        const beyond = busier.taken - busier.given > busier.granted - busier.returned
        const wrong = beyond || clock >= lease.until ? 'a request began on a slot that its node does not hold' : undefined
        change(at, 'a request begins', { lease: busier }, { starts: world.starts - 1, wrong })
      }
      if (isOver(lease, clock)) {
        const anew = beginAnew(lease, world.begun, limit)
        const wrong = anew.taken - anew.given === lease.taken - lease.given ? undefined : 'a node that began anew forgot what runs'
        // Replies that are still in flight belong to another lease.
        change(at, 'begins anew', { lease: anew, answers: [] }, { begun: world.begun + 1, wrong })
        continue
      }
      if (heldOf(lease) > 0) change(at, 'gives back', { lease: edited(lease, (mine) => surrender(mine, 0)) })
      if (underWay >= messages) continue
      for (const { name, ...wish } of WISHES) {
        const mine = { ...lease }
        const ask = askFor(mine, { ...wish, ...this.#terms })
        change(at, name, { lease: mine, asks: [...asks, { ask, sent: clock }] })
      }
    }
    if (world.time < moments - 1) next.push({ ...world, time: world.time + 1, path: { before: world.path, step: 'a moment passes' } })
    return next
  }

  get #terms(): Pick<LeaseAsk, 'limit' | 'nodes' | 'early' | 'lifetime'> {
    return { limit: this.#options.limit, nodes: 1, early: 0, lifetime: this.#options.lifetime }
  }

  #answer(
    { record: before, time }: World,
    lease: Lease | undefined,
    { ask, sent }: Ask,
  ): { record: LeaseRecord; answer: readonly Answer[] } {
    const record = copyOf(before)
    const { reply } = grantLease(record, String(ask.incarnation), ask, time)
    return { record, answer: lease?.incarnation === ask.incarnation ? [{ ask, reply, sent }] : [] }
  }

  fault(world: World): string | undefined {
    const { limit } = this.#options
    const clock = clockAt(world)
    let held = 0
    for (const { lease } of world.parties) {
      if (lease === undefined) continue
      if (lease.taken < lease.given) return 'more requests ended than began'
      if (clock < lease.until) held += Math.max(0, lease.granted - lease.returned)
    }
    if (held > limit) return `nodes hold ${held} of ${limit} slots`
    return world.wrong ?? this.#lost(world)
  }

  /**
   * After all messages in flight are lost and processes have sent messages for a lifetime, the store must have exactly the slots of
   * each live process.
   */
  #lost({ parties, record: before, time, begun }: World): string | undefined {
    const { limit, lifetime } = this.#options
    const record = copyOf(before)
    const leases = parties.flatMap(({ lease }) => (lease === undefined ? [] : [{ ...lease }]))
    let incarnation = begun
    for (const later of [0, lifetime / 2, lifetime]) {
      const now = time + later
      const clock = now * PACE + OFFSET
      for (const [at, lease] of leases.entries()) {
        const mine = isOver(lease, clock) ? beginAnew(lease, incarnation++, limit) : lease
        const ask = askFor(mine, { first: 0, waiting: 0, ahead: 0, ...this.#terms })
        const { reply } = grantLease(record, String(mine.incarnation), ask, now)
        hearReply(mine, ask, reply, clock, clock, 0)
        leases[at] = mine
      }
    }
    const out = leases.reduce((sum, { granted, returned, taken, given }) => sum + Math.max(granted - returned, taken - given), 0)
    return record.out === out ? undefined : `${record.out} slots are out, but nodes have ${out}`
  }

  key(world: World): string {
    const { time, crashes, starts, record, parties } = world
    const { rows, tail, quietUntil } = record
    const parts = parties.map(({ lease, asks, answers }) => {
      const own = lease === undefined ? 'x' : this.#part(world, lease.incarnation, lease, asks, answers)
      // Incarnations that this process has given up.
      const before = new Set(asks.map(({ ask }) => ask.incarnation).filter((incarnation) => incarnation !== lease?.incarnation))
      return [own, ...[...before].map((incarnation) => this.#part(world, incarnation, undefined, asks, [])).sort()].join('+')
    })
    const known = new Set(parties.flatMap(({ lease, asks }) => [lease?.incarnation, ...asks.map(({ ask }) => ask.incarnation)]).map(String))
    const orphans = [...rows.entries()].filter(([name, { until }]) => !known.has(name) && until > time)
    const rest = orphans.map(([, row]) => `${Math.max(row.granted - row.returned, row.taken - row.given)},${row.until}`).sort()
    return `${time},${crashes},${starts},${tail ? 1 : 0},${Math.max(quietUntil, time)}|${parts.sort().join('|')}|${rest.join('|')}`
  }

  /** The possible future of an incarnation. Values that only grow are counted from the minimum of all. */
  #part(world: World, incarnation: number, lease: Lease | undefined, asks: readonly Ask[], answers: readonly Answer[]): string {
    const { record, time } = world
    const clock = clockAt(world)
    const known = record.rows.get(String(incarnation))
    // The store forgets an expired row at the next request for a lease.
    const row = known !== undefined && known.until > time ? known : NO_ROW
    const base = Math.min(row.returned, lease?.returned ?? row.returned)
    const ended = Math.min(row.given, lease?.given ?? row.given)
    const end = (sent: number): number => Math.max(clock, lease?.until ?? clock, sent + this.#options.lifetime)
    let text = `${row.granted - base},${row.returned - base},${row.taken - ended},${row.given - ended},${row.until}`
    if (lease !== undefined) {
      const { granted, returned, taken, given, heard, until } = lease
      text += `L${granted - base},${returned - base},${taken - ended},${given - ended},${heard > 0 ? Math.max(until, clock) : ''}`
    }
    const mine = asks.filter(({ ask }) => ask.incarnation === incarnation)
    const seqs = mine.map(({ ask }) => ask.seq).sort((a, b) => a - b)
    const sent = mine.map((one) => `A${askKey(one.ask, row, base, ended, seqs)},${end(one.sent)}`)
    const back = answers.map(({ reply, ...one }) => `B${Math.max(reply.granted, lease?.granted ?? 0) - base},${end(one.sent)}`)
    return text + sent.sort().join('') + back.sort().join('')
  }
}

const NO_ROW: LeaseRow = { ...newLeaseRow(), until: 0 }

function askKey(ask: LeaseAsk, row: LeaseRow, base: number, ended: number, seqs: readonly number[]): string {
  const granted = Math.max(ask.granted, row.granted)
  const told = [granted - base, Math.max(ask.returned, row.returned) - base, Math.max(ask.taken, row.taken) - ended]
  const counts = [...told, Math.max(ask.given, row.given) - ended, ask.granted > row.granted ? 1 : 0]
  // An overtaken request is granted nothing.
  if (ask.seq <= row.seq) return counts.join()
  const wishes = [ask.least, ask.waiting, ask.upTo].map((wish) => Math.max(wish, granted) - base)
  return [...counts, ...wishes, seqs.indexOf(ask.seq)].join()
}

function clockAt({ time }: World): number {
  return time * PACE + OFFSET
}

function copyOf(record: LeaseRecord): LeaseRecord {
  return { ...record, rows: new Map([...record.rows].map(([name, row]) => [name, { ...row }])) }
}

function edited(lease: Lease, edit: (copy: Lease) => void): Lease {
  const copy = { ...lease }
  edit(copy)
  return copy
}
