import {
  askFor,
  grantLease,
  hearReply,
  heldOf,
  type Lease,
  type LeaseRecord,
  type LeaseRow,
  newLease,
  newLeaseRecord,
  newLeaseRow,
  servesLease,
  surrender,
  takeLease,
} from '@weir/core/leases'
import { type LeaseAsk, type LeaseReply, type Ordinal, ordinalAt } from '@weir/core/sync'
import type { Model, Path } from './search.ts'

/** The space of a search: all events of some processes, with a bounded number of messages in flight at once. */
export interface ModelOptions {
  readonly nodes: number
  readonly limit: number
  /** Messages in flight at once: requests for leases and replies. */
  readonly messages: number
  /** Processes that crash and restart as new ones. */
  readonly crashes: number
  /** Units refunded. */
  readonly refunds: number
  /** Intervals that pass. 1 if none does. */
  readonly intervals: number
  /**
   * Moments in an interval, of which the last one is its last span. If the store loses nothing and there is one interval, no time
   * passes.
   */
  readonly ticks: number
  /** The number of times that the store loses data: all of it, or the changes since a replica's last copy. */
  readonly losses: number
  /** The number of times that processes may return units. It is infinite in searches in which the store loses nothing. */
  readonly returns: number
}

/** A model of leases of intervals. */
export function leaseModel(options: ModelOptions): Model<World> {
  return {
    first: firstWorld(options),
    successors: (world) => successorsOf(world, options),
    fault: (world) => faultOf(world, options),
    key: (world) => keyOf(world, options),
  }
}

/**
 * Clocks of processes are wrong, because the store's time is never compared with them. They run fast by more than the allowance for
 * drift, so that it moves no start or end of a lease to another moment.
 */
const OFFSET = 1000
const PACE = 1.0002
/** Moments for which nothing is granted after a loss. */
const LIFETIME = 1

function termsOf(limit: number): Pick<LeaseAsk, 'limit' | 'nodes' | 'early' | 'lifetime'> {
  return { limit, nodes: 1, early: 1, lifetime: LIFETIME }
}

interface Ask {
  readonly ask: LeaseAsk
  readonly sent: number
}

interface Answer extends Ask {
  readonly reply: LeaseReply
}

/** One start of a process: its leases, and its messages in flight. */
interface Party {
  readonly id: number
  readonly leases: Lease[]
  asks: readonly Ask[]
  answers: readonly Answer[]
}

/** A state of the processes, the store and the network. */
export interface World {
  readonly parties: Party[]
  readonly records: LeaseRecord[]
  /** The records of a replica, if it has any. Their data is not lost while the store can still lose something. */
  copies: readonly LeaseRecord[] | undefined
  /** Units that were leased when the store lost them, by interval. */
  readonly forgotten: number[]
  /** Units that crashed processes have used, by interval. */
  readonly spent: number[]
  time: number
  crashes: number
  refunds: number
  losses: number
  returns: number
  made: number
  /** An event that must not happen. */
  wrong: string | undefined
  readonly path: Path
}

function firstWorld({ nodes, limit, crashes, refunds, intervals, losses, returns }: ModelOptions): World {
  const world: World = {
    parties: [],
    records: Array.from({ length: intervals }, newLeaseRecord),
    copies: undefined,
    forgotten: Array.from({ length: intervals }, () => 0),
    spent: Array.from({ length: intervals }, () => 0),
    time: 0,
    crashes,
    refunds,
    losses,
    returns,
    made: 0,
    wrong: undefined,
    path: { before: undefined, step: 'start' },
  }
  for (let node = 0; node < nodes; node++) join(world, limit)
  return world
}

function join(world: World, limit: number): void {
  const id = world.made++
  const leases = world.records.map((_, ordinal) => newLease(ordinal as Ordinal, id, limit))
  world.parties.push({ id, leases, asks: [], answers: [] })
}

/** A copy that shares unchanged parts. Code that changes a party or a record copies it first. */
function copyOf(world: World, step: string): World {
  return {
    parties: [...world.parties],
    records: [...world.records],
    copies: world.copies,
    forgotten: [...world.forgotten],
    spent: [...world.spent],
    time: world.time,
    crashes: world.crashes,
    refunds: world.refunds,
    losses: world.losses,
    returns: world.returns,
    made: world.made,
    wrong: world.wrong,
    path: { before: world.path, step },
  }
}

function copyOfRecord(record: LeaseRecord): LeaseRecord {
  const rows = new Map<string, LeaseRow>()
  for (const [name, row] of record.rows) rows.set(name, { ...row })
  return { ...record, rows }
}

const WISHES = [
  { name: 'tells', first: 0, waiting: 0, ahead: 0 },
  { name: 'waits for one unit', first: 1, waiting: 1, ahead: 0 },
  { name: 'wants two ahead', first: 0, waiting: 0, ahead: 2 },
] as const

/** Returns all states that may come next. */
function successorsOf(world: World, options: ModelOptions): World[] {
  const next: World[] = []
  const { limit, messages, intervals, ticks } = options
  const underWay = world.parties.reduce((sum, { asks, answers }) => sum + asks.length + answers.length, 0)
  const clock = world.time * PACE + OFFSET
  for (const [at, party] of world.parties.entries()) {
    const change = (step: string, edit: (copy: World, mine: Party) => void): void => {
      const copy = copyOf(world, `node ${party.id}: ${step}`)
      const mine = { ...party, leases: party.leases.map((lease) => ({ ...lease })) }
      copy.parties[at] = mine
      edit(copy, mine)
      next.push(copy)
    }
    for (const [ordinal, lease] of party.leases.entries()) {
      if (takeLease({ ...lease }, 1, clock)) {
        change('takes a unit', (copy, mine) => {
          takeLease(mine.leases[ordinal] as Lease, 1, clock)
          if (intervals > 1 && ordinalAt(world.time, ticks) !== ordinal) copy.wrong = 'a unit was allowed outside of its interval'
        })
      }
      if (world.returns > 0 && heldOf(lease) > 0) {
        change('gives back', (copy, mine) => {
          copy.returns--
          surrender(mine.leases[ordinal] as Lease, 0)
        })
      }
      if (world.refunds > 0 && lease.taken > lease.given) {
        change('refunds', (copy, mine) => {
          ;(mine.leases[ordinal] as Lease).given++
          copy.refunds--
        })
      }
      if (underWay >= messages || (ordinal + 1) * ticks <= world.time) continue
      for (const { name, ...wish } of WISHES) {
        change(name, (_, mine) => {
          const ask = askFor(mine.leases[ordinal] as Lease, { ...wish, ...termsOf(limit) })
          mine.asks = [...mine.asks, { ask, sent: clock }]
        })
      }
    }
    for (const [i, message] of party.asks.entries()) {
      const rest = party.asks.toSpliced(i, 1)
      change('an ask is lost', (_, mine) => {
        mine.asks = rest
      })
      change('an ask arrives', (copy, mine) => {
        mine.asks = rest
        answer(copy, mine, message, ticks)
      })
      if (underWay < messages) change('an ask arrives and will again', (copy, mine) => answer(copy, mine, message, ticks))
    }
    for (const [i, message] of party.answers.entries()) {
      const rest = party.answers.toSpliced(i, 1)
      change('an answer is lost', (_, mine) => {
        mine.answers = rest
      })
      const hear = (mine: Party): void => {
        const { ask, reply, sent } = message
        hearReply(mine.leases[ask.ordinal] as Lease, ask, reply, sent, clock, ticks)
      }
      change('an answer arrives', (_, mine) => {
        mine.answers = rest
        hear(mine)
      })
      change('an answer arrives and will again', (_, mine) => hear(mine))
    }
    if (world.crashes > 0) {
      change('crashes and comes back', (copy, mine) => {
        copy.crashes--
        for (const [ordinal, lease] of mine.leases.entries())
          copy.spent[ordinal] = (copy.spent[ordinal] as number) + lease.taken - lease.given
        mine.leases.length = 0
        mine.answers = []
        join(copy, limit)
      })
    }
  }
  if (world.losses > 0) {
    if (world.copies === undefined) {
      const copy = copyOf(world, 'a replica hears of all')
      copy.copies = copy.records.map(copyOfRecord)
      next.push(copy)
    } else {
      next.push(lossOf(world, 'the replica takes over', world.copies.map(copyOfRecord)))
    }
    next.push(lossOf(world, 'the store begins empty', world.records.map(newLeaseRecord)))
  }
  if (passes(options) && world.time < intervals * ticks - 1) {
    const copy = copyOf(world, 'a moment passes')
    copy.time++
    // The store forgets intervals that have ended.
    for (let ordinal = 0; (ordinal + 1) * ticks <= copy.time; ordinal++) {
      copy.records[ordinal] = newLeaseRecord()
      copy.copies = copy.copies?.with(ordinal, newLeaseRecord())
      copy.forgotten[ordinal] = 0
    }
    for (const [at, party] of copy.parties.entries()) copy.parties[at] = withoutOver(party, copy, limit, ticks)
    next.push(copy)
  }
  return next
}

function passes({ intervals, losses }: ModelOptions): boolean {
  return intervals > 1 || losses > 0
}

/** The store continues with earlier records. It may grant lost units again until a process reports them. */
function lossOf(world: World, step: string, records: readonly LeaseRecord[]): World {
  const copy = copyOf(world, step)
  copy.losses--
  if (copy.losses === 0) copy.copies = undefined
  for (const [ordinal, record] of records.entries()) {
    for (const [name, row] of (world.records[ordinal] as LeaseRecord).rows) {
      copy.forgotten[ordinal] = (copy.forgotten[ordinal] as number) + Math.max(0, outOf(row) - outOf(record.rows.get(name) ?? NO_ROW))
    }
    copy.records[ordinal] = record
  }
  return copy
}

/**
 * A process without its parts of intervals that have ended: requests for leases, which change nothing any more, and leases that
 * can't be used, even after a late reply. Their used units were checked before.
 */
function withoutOver(party: Party, { time, spent }: World, limit: number, ticks: number): Party {
  const clock = time * PACE + OFFSET
  const runs = ({ ordinal }: { readonly ordinal: number }): boolean => (ordinal + 1) * ticks > time
  const usable = ({ ask, reply, sent }: Answer): boolean => {
    const lease = { ...(party.leases[ask.ordinal] as Lease) }
    hearReply(lease, ask, reply, sent, clock, ticks)
    return lease.until > clock
  }
  const asks = party.asks.filter(({ ask }) => runs(ask))
  const answers = party.answers.filter((message) => runs(message.ask) || usable(message))
  const leases = party.leases.map((lease) => {
    const over = !runs(lease) && lease.until <= clock && !answers.some(({ ask }) => ask.ordinal === lease.ordinal)
    return over ? newLease(lease.ordinal, party.id, limit) : lease
  })
  for (const ordinal of spent.keys()) if (!runs({ ordinal })) spent[ordinal] = 0
  return { ...party, asks, answers, leases }
}

function answer(world: World, party: Party, { ask, sent }: Ask, ticks: number): void {
  const now = world.time
  if (!servesLease(ask, now, ticks)) return
  const record = copyOfRecord(world.records[ask.ordinal] as LeaseRecord)
  world.records[ask.ordinal] = record
  const known = record.rows.get(String(party.id))?.granted ?? 0
  const quiet = now < record.quietUntil || ask.granted > known
  const { reply } = grantLease(record, String(party.id), ask, now)
  if (reply.granted > Math.max(known, ask.granted)) {
    if (quiet) world.wrong = 'the store grants though it has noticed that it lost something'
    if (sumOfRows(record) > ask.limit) world.wrong = 'the store grants more than it knows to be left'
  }
  if (party.leases.length > 0) party.answers = [...party.answers, { ask, reply, sent }]
}

/** Returns the fault of a state, or undefined if there is none. */
function faultOf(world: World, options: ModelOptions): string | undefined {
  const { intervals, ticks } = options
  if (world.wrong !== undefined) return world.wrong
  const whole = world.losses === options.losses
  for (const [ordinal, record] of world.records.entries()) {
    const limit = options.limit + (world.forgotten[ordinal] as number)
    let used = world.spent[ordinal] as number
    let held = 0
    for (const { leases } of world.parties) {
      const lease = leases[ordinal]
      if (lease === undefined) continue
      const net = lease.taken - lease.given
      if (net < 0 || heldOf(lease) < 0) return `a node holds less than nothing of interval ${ordinal}`
      used += net
      held += heldOf(lease)
    }
    if (used > limit) return `${used} of ${limit} units were allowed in interval ${ordinal}`
    if (world.time >= (ordinal + 1) * ticks && intervals > 1) continue
    if (used + held > limit) return `${used} used and ${held} held of ${limit} units in interval ${ordinal}`
    const known = sumOfRows(record)
    // The store does not have forgotten units until a process reports them. A late message may contain units that have been
    // returned since.
    if (whole && known < used + held) return `the store knows of ${known} units in interval ${ordinal}, the nodes of ${used + held}`
    if (whole && known > limit) return `the store granted ${known} of ${limit} units of interval ${ordinal}`
    const lost = lostUnits(world, ordinal, whole ? limit : Number.POSITIVE_INFINITY, options)
    if (lost !== undefined) return lost
  }
  return undefined
}

function sumOfRows({ rows }: LeaseRecord): number {
  let sum = 0
  for (const row of rows.values()) sum += outOf(row)
  return sum
}

function outOf({ granted, returned, taken, given, cleared }: LeaseRow): number {
  return Math.max(granted - returned, taken - given) - cleared
}

/** Checks that only units of crashed processes are lost, once all messages in flight are lost and each process has reported its units. */
function lostUnits(world: World, ordinal: number, most: number, { limit, ticks }: ModelOptions): string | undefined {
  const record = copyOfRecord(world.records[ordinal] as LeaseRecord)
  const now = Math.max(world.time, ordinal * ticks)
  let mine = 0
  const alive = new Set<string>()
  for (const { id, leases } of world.parties) {
    const lease = leases[ordinal]
    if (lease === undefined) continue
    const copy = { ...lease }
    const ask = askFor(copy, { first: 0, waiting: 0, ahead: 0, ...termsOf(limit) })
    const { reply } = grantLease(record, String(id), ask, now)
    hearReply(copy, ask, reply, now, now, ticks)
    if (copy.granted !== reply.granted) return `node ${id} does not learn what it was granted`
    mine += copy.taken - copy.given + heldOf(copy)
    alive.add(String(id))
  }
  let gone = 0
  for (const [name, row] of record.rows) if (!alive.has(name)) gone += outOf(row)
  if (record.out !== mine + gone) return `${record.out} units are out in interval ${ordinal}, but nodes have ${mine} and ${gone} are gone`
  if (mine + gone > most) return `${mine} units are at nodes and ${gone} are gone, of ${most}`
  return undefined
}

/**
 * A state as text. States with the same future have the same text: processes are interchangeable, counters that only grow start
 * from their common minimum, and messages contain only the values that still have an effect.
 */
function keyOf(world: World, options: ModelOptions): string {
  const { time, crashes, refunds, losses, records, copies = [], spent, forgotten } = world
  const parties = world.parties.map((party) => partKey(party, world, options)).sort()
  // The number of remaining returns matters only if it is limited.
  const returns = world.returns < Number.POSITIVE_INFINITY ? world.returns : ''
  const heads = [...records, ...copies].map(({ tail, quietUntil }) => `${tail ? 1 : 0}${Math.max(quietUntil, time)}`)
  return `${time},${crashes},${refunds},${losses},${returns},${spent},${forgotten},${heads}|${parties.join('|')}`
}

const NO_ROW: LeaseRow = newLeaseRow()

function partKey({ id, leases, asks, answers }: Party, { records, copies, time, losses }: World, { ticks }: ModelOptions): string {
  const clock = time * PACE + OFFSET
  let text = leases.length === 0 ? 'x' : ''
  for (const [ordinal, record] of records.entries()) {
    const lease = leases[ordinal]
    const row = record.rows.get(String(id)) ?? NO_ROW
    // Units that the store can still lose are counted from the beginning.
    const base = losses > 0 ? 0 : lease === undefined ? row.returned : Math.min(row.returned, lease.returned)
    text += `;${row.granted - base},${row.returned - base},${row.taken},${row.given}`
    if (lease !== undefined) {
      const { granted, returned, taken, given, from, until } = lease
      text += `L${granted - base},${returned - base},${taken},${given},${Math.max(from, clock)},${Math.max(until, clock)}`
    }
    const copy = copies?.[ordinal]?.rows.get(String(id))
    if (copy !== undefined) text += `C${copy.granted},${copy.returned},${copy.taken},${copy.given}`
    const mine = asks.filter(({ ask }) => ask.ordinal === ordinal)
    if (mine.length > 0) {
      const seqs = mine.map(({ ask }) => ask.seq).sort((a, b) => a - b)
      text += mine
        .map((one) => {
          // A message can't move the lease's end further than if it arrived now.
          const until = Math.max(lease?.until ?? clock, clock, one.sent + (ordinal + 1) * ticks - time)
          if (losses === 0) return `A${askKey(one, until, row, base, seqs)}`
          const overtaken = `${one.ask.seq <= row.seq ? 1 : 0}${copy !== undefined && one.ask.seq <= copy.seq ? 1 : 0}`
          return `A${askKey(one, until, NO_ROW, base, seqs)},${overtaken}`
        })
        .sort()
        .join('')
    }
    if (lease === undefined) continue
    text += answers
      .filter(({ ask }) => ask.ordinal === ordinal)
      .map(({ reply, sent }) => {
        const until = Math.max(lease.until, clock, sent + (ordinal + 1) * ticks - reply.now)
        return `B${Math.max(reply.granted, lease.granted) - base},${until},${Math.max(0, ordinal * ticks - reply.now)}`
      })
      .sort()
      .join('')
  }
  return text
}

function askKey({ ask }: Ask, until: number, row: LeaseRow, base: number, seqs: readonly number[]): string {
  const returned = Math.max(ask.returned, row.returned)
  const granted = Math.max(ask.granted, row.granted)
  const counts = `${granted - base},${returned - base},${Math.max(ask.taken, row.taken)},${Math.max(ask.given, row.given)},${until}`
  // An overtaken request is granted nothing.
  if (ask.seq <= row.seq) return counts
  const [least, waiting, upTo] = [ask.least, ask.waiting, ask.upTo].map((wish) => Math.max(wish, granted) - base)
  return `${counts},${least},${waiting},${upTo},${seqs.indexOf(ask.seq)}`
}
