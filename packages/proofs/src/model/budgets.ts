import {
  askFor,
  changeOpen,
  closeOpen,
  grantLease,
  hearReply,
  heldOf,
  type Lease,
  type LeaseRecord,
  newLease,
  newLeaseRecord,
  newLeaseRow,
  takeLease,
} from '@weir/core/leases'
import type { LeaseAsk, LeaseReply, Ordinal } from '@weir/core/sync'
import type { Model, Path } from './search.ts'

/** The space of a search: all events of processes that reserve units of their leases, with a bounded number of messages in flight. */
export interface BudgetOptions {
  readonly nodes: number
  readonly limit: number
  /** Messages in flight at once: requests for leases and replies. */
  readonly messages: number
  /** Processes that crash. They don't come back. */
  readonly crashes: number
  /** Reservations, of `UNITS` each. */
  readonly reserves: number
  /** Units that calls use, each reported at once. */
  readonly uses: number
  /** Moments that pass. */
  readonly moments: number
}

/** Units of a reservation. Its call may use one more. */
const UNITS = 2
/** Moments until the store settles it: its ttl, and the lifetime of a process. */
const OPEN_FOR = 2
const INTERVAL = 1_000
const TERMS = { nodes: 1, early: 0, lifetime: 1 } as const

/** A reservation, until the store has received its settlement. */
interface Held {
  readonly end: number
  readonly units: number
  /** The units that its process reported, which are those that its call has used. */
  readonly due: number
  readonly isOpen: boolean
}

/** Counts of a process when it sent a request: units that its calls have used, of these more than they reserved, and unused units. */
interface Sent {
  readonly used: number
  readonly over: number
  readonly unused: number
}

interface Ask {
  readonly ask: LeaseAsk
  readonly sent: Sent
  /** Reservations that it contains no more. */
  readonly closed: readonly Held[]
}

interface Party {
  readonly id: number
  /** Undefined after a crash. */
  readonly lease: Lease | undefined
  readonly held: readonly Held[]
  /** Units that calls which have ended used, and the part of these beyond their reservations. */
  readonly used: number
  readonly over: number
  readonly asks: readonly Ask[]
  readonly answers: readonly { readonly ask: LeaseAsk; readonly reply: LeaseReply }[]
  /** The latest request that the store has received. */
  readonly received: Ask | undefined
}

interface World {
  readonly parties: readonly Party[]
  readonly record: LeaseRecord
  readonly time: number
  readonly crashes: number
  readonly reserves: number
  readonly uses: number
  /** Units that live processes used of reservations which the store has settled, because they were cut off from it, or slow. */
  readonly late: number
  readonly path: Path
}

const WISHES = [
  { name: 'reports', first: 0, waiting: 0, ahead: 0 },
  { name: 'waits for a reservation', first: UNITS, waiting: UNITS, ahead: 0 },
] as const

/** A model of reservations of leased units: calls use units, and processes settle them, die, or are cut off from the store. */
export function budgetModel(options: BudgetOptions): Model<World> {
  return new BudgetModel(options)
}

class BudgetModel implements Model<World> {
  readonly #options: BudgetOptions
  readonly first: World

  constructor(options: BudgetOptions) {
    const { nodes, limit, crashes, reserves, uses } = options
    this.#options = options
    const party = (id: number): Party => ({
      ...{ id, lease: newLease(0 as Ordinal, 0, limit), held: [], used: 0, over: 0, asks: [], answers: [] },
      received: undefined,
    })
    const parties = Array.from({ length: nodes }, (_, id) => party(id))
    this.first = {
      parties,
      record: newLeaseRecord(),
      time: 0,
      crashes,
      reserves,
      uses,
      late: 0,
      path: { before: undefined, step: 'start' },
    }
  }

  successors(world: World): readonly World[] {
    const { limit, messages, moments } = this.#options
    const { time, path } = world
    const next: World[] = []
    const underWay = world.parties.reduce((sum, { asks, answers }) => sum + asks.length + answers.length, 0)
    for (const [at, party] of world.parties.entries()) {
      const { lease, held, asks, answers } = party
      const change = (step: string, changed: Partial<Party>, more: Partial<World> = {}): void => {
        const parties = world.parties.with(at, { ...party, ...changed })
        next.push({ ...world, parties, ...more, path: { before: path, step: `node ${party.id}: ${step}` } })
      }
      for (const [i, one] of asks.entries()) {
        const rest = asks.toSpliced(i, 1)
        const { record, changed } = arrival(world.record, party, one, time)
        change('an ask is lost', { asks: rest })
        change('an ask arrives', { ...changed, asks: rest }, { record })
        if (underWay < messages) change('an ask arrives and will again', changed, { record })
      }
      if (lease === undefined) continue
      for (const [i, { ask, reply }] of answers.entries()) {
        const rest = answers.toSpliced(i, 1)
        change('an answer is lost', { answers: rest })
        change('an answer arrives', { answers: rest, lease: edited(lease, (mine) => hearReply(mine, ask, reply, time, time, INTERVAL)) })
      }
      if (world.crashes > 0) change('crashes', { lease: undefined, answers: [] }, { crashes: world.crashes - 1 })
      const taking = copyOf(lease)
      if (world.reserves > 0 && takeLease(taking, UNITS, time)) {
        const end = time + OPEN_FOR
        changeOpen(taking, end, UNITS)
        change(
          'reserves',
          { lease: taking, held: [...held, { end, units: UNITS, due: 0, isOpen: true }] },
          { reserves: world.reserves - 1 },
        )
      }
      for (const [i, one] of held.entries()) {
        if (!one.isOpen) continue
        if (world.uses > 0 && one.due <= UNITS) {
          const used = { ...one, due: one.due + 1 }
          const mine = edited(lease, (copy) => changeOpen(copy, one.end, -1))
          change('a call uses a unit', { lease: mine, held: held.with(i, used) }, { uses: world.uses - 1 })
        }
        change('settles', settled(party, lease, i))
      }
      if (underWay >= messages) continue
      for (const { name, ...wish } of WISHES) {
        const mine = copyOf(lease)
        change(name, { lease: mine, asks: [...asks, askOf(party, mine, askFor(mine, { ...wish, limit, ...TERMS }))] })
      }
    }
    if (time < moments - 1) {
      const late = world.late + lateUnits(world.parties, time + 1)
      next.push({ ...world, time: time + 1, late, path: { before: path, step: 'a moment passes' } })
    }
    return next
  }

  fault(world: World): string | undefined {
    return this.#beyond(world) ?? this.#leaked(world)
  }

  /** Checks the limit. Only late units and charges of more units than were reserved may exceed it. */
  #beyond({ parties, record, late }: World): string | undefined {
    let mine = 0
    let allowed = this.#options.limit + late
    for (const { id, lease, over, received } of parties) {
      if (lease === undefined) {
        mine += received?.sent.used ?? 0
        allowed += received?.sent.over ?? 0
        continue
      }
      const row = record.rows.get(String(id))
      if (row !== undefined && lease.granted > row.granted) return `the store does not know what node ${id} was granted`
      mine += lease.taken - lease.given + Math.max(0, heldOf(lease))
      allowed += over
    }
    return mine > allowed ? `nodes have ${mine} units of ${allowed}` : undefined
  }

  /** Checks that no unit leaks: once all reservations have ended, the store counts the units that calls used, as far as it can know. */
  #leaked({ parties, record: before, time }: World): string | undefined {
    const record = copyOfRecord(before)
    let used = 0
    let out = 0
    for (const party of parties) {
      if (party.lease === undefined) continue
      let copy: Party & { readonly lease: Lease } = { ...party, lease: copyOf(party.lease) }
      for (const [i, { isOpen }] of party.held.entries()) if (isOpen) copy = { ...copy, ...settled(copy, copy.lease, i) }
      const { lease } = copy
      const ask = askFor(lease, { first: 0, waiting: 0, ahead: 0, limit: this.#options.limit, ...TERMS })
      hearReply(lease, ask, grantLease(record, String(party.id), ask, time).reply, time, time, INTERVAL)
      used += copy.used
      out += lease.taken - lease.given + Math.max(0, heldOf(lease))
    }
    for (const { id, lease, received } of parties) {
      if (lease !== undefined || received === undefined) continue
      const { ask, sent } = received
      const granted = record.rows.get(String(id))?.granted ?? 0
      used += sent.used
      out += sent.used + Math.max(0, sent.unused + granted - ask.granted - openOver(received))
    }
    // Any request settles the reservations that have ended.
    const look: LeaseAsk = { ...askFor(newLease(0 as Ordinal, 1, 0), { first: 0, waiting: 0, ahead: 0, limit: 0, ...TERMS }) }
    grantLease(record, 'look', look, time + OPEN_FOR)
    if (record.used !== used) return `the store counts ${record.used} units, but calls used ${used}`
    return record.out === out ? undefined : `${record.out} units are out, but nodes have ${out}`
  }

  key({ parties, record, time, crashes, reserves, uses, late }: World): string {
    const parts = parties.map((party) => partOf(party, record, time)).sort()
    return `${time},${crashes},${reserves},${uses},${late},${record.tail ? 1 : 0}|${parts.join('|')}`
  }
}

/** Units of live processes that become late at a time. The call of an open reservation may still use all of them. */
function lateUnits(parties: readonly Party[], time: number): number {
  const all = parties.flatMap(({ lease, held }) => (lease === undefined ? [] : held))
  return all.reduce((sum, { end, units, due, isOpen }) => sum + (end !== time ? 0 : isOpen ? units : Math.min(due, units)), 0)
}

/** Units beyond the open reservations of a request. The process charges them to its lease only when it settles. */
function openOver({ ask }: Ask): number {
  return (ask.open ?? []).reduce((sum, { back }) => sum + Math.max(0, -back), 0)
}

function settled(party: Party, lease: Lease, i: number): Partial<Party> & { readonly lease: Lease } {
  const one = party.held[i] as Held
  const mine = edited(lease, (copy) => {
    closeOpen(copy, one, one.due)
    if (one.due < one.units) copy.given += one.units - one.due
    else copy.taken += one.due - one.units
  })
  const held = party.held.with(i, { ...one, isOpen: false })
  return { lease: mine, held, used: party.used + one.due, over: party.over + Math.max(0, one.due - one.units) }
}

function askOf({ held, used, over }: Party, lease: Lease, ask: LeaseAsk): Ask {
  const open = held.filter(({ isOpen }) => isOpen)
  const sum = (of: (one: Held) => number): number => open.reduce((all, one) => all + of(one), 0)
  const sent = { used: used + sum(({ due }) => due), over: over + sum(({ due, units }) => Math.max(0, due - units)), unused: heldOf(lease) }
  return { ask, sent, closed: held.filter(({ isOpen }) => !isOpen) }
}

function arrival(
  before: LeaseRecord,
  party: Party,
  one: Ask,
  now: number,
): { readonly record: LeaseRecord; readonly changed: Partial<Party> } {
  const record = copyOfRecord(before)
  const { reply } = grantLease(record, String(party.id), one.ask, now)
  const answers = party.lease === undefined ? [] : [...party.answers, { ask: one.ask, reply }]
  if (one.ask.seq <= (party.received?.ask.seq ?? 0)) return { record, changed: { answers } }
  return { record, changed: { answers, received: one, held: party.held.filter((held) => !one.closed.includes(held)) } }
}

/** A process as text, with its row at the store. Numbers of requests count only by their order. */
function partOf({ id, lease, held, used, over, asks, answers, received }: Party, { rows }: LeaseRecord, time: number): string {
  const row = rows.get(String(id)) ?? newLeaseRow()
  const seqs = [...new Set([row.seq, lease?.heard ?? 0, ...asks.map(({ ask }) => ask.seq), ...answers.map(({ ask }) => ask.seq)])]
  const order = (seq: number): number => seqs.filter((other) => other < seq).length
  const counts = ({ granted, returned, taken, given }: Pick<Lease, 'granted' | 'returned' | 'taken' | 'given'>) => [
    granted,
    returned,
    taken,
    given,
  ]
  const returns = (open: Iterable<readonly [number, number]> = []) => [...open].map(([due, back]) => [Math.max(time, due), back]).sort()
  const pairs = (open: LeaseAsk['open'] = []) => returns(open.map(({ due, back }) => [due, back] as const))
  const ofAsk = ({ ask, sent, closed }: Ask) => {
    const isNew = ask.seq > row.seq
    const wish = isNew ? [ask.least, ask.waiting, ask.upTo, pairs(ask.open), sent.used, sent.over, sent.unused, closed.length] : []
    return [order(ask.seq), counts(ask), wish]
  }
  return JSON.stringify([
    lease && [counts(lease), order(lease.heard), lease.asked, returns(lease.open)],
    lease && held.map(({ end, due, isOpen }) => [Math.max(time, end), due, isOpen ? 1 : 0]),
    [used, over, counts(row), order(row.seq), row.back, row.more, pairs(row.open)],
    asks.map(ofAsk),
    lease && answers.map(({ ask, reply }) => [order(ask.seq), reply.granted]),
    received && [received.ask.granted, received.sent.used, received.sent.over, received.sent.unused, openOver(received)],
  ])
}

function copyOf(lease: Lease): Lease {
  return { ...lease, open: new Map(lease.open) }
}

function copyOfRecord(record: LeaseRecord): LeaseRecord {
  return { ...record, rows: new Map([...record.rows].map(([name, row]) => [name, { ...row }])) }
}

function edited(lease: Lease, edit: (copy: Lease) => void): Lease {
  const copy = copyOf(lease)
  edit(copy)
  return copy
}
