import type { Coordination, Receipt } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import type { SeededRandom } from '@weir/testing'
import { atLeast, atMost, type Figure, percent } from '../goal.ts'
import { BudgetCluster, type Process } from './cluster.ts'

const DAY = 86_400_000
/** Milliseconds after its end in which the store has certainly settled a reservation, with one sync of another process. */
const AFTERWARDS: Readonly<Record<string, number>> = { central: 1_100, leased: 7_000 }

const policyOf = (coordination: Coordination) => ({ name: 'tokens', limit: 1e12, interval: DAY, coordination, failMode: 'closed' }) as const

/** Kills one of three processes with 1,000 open reservations. A third of them have reported their use, and a third would be refunded. */
export async function killed(coordination: Coordination, seed: number): Promise<readonly Figure[]> {
  const cluster = await BudgetCluster.start([policyOf(coordination)], 3, seed)
  const dying = cluster.processes[2] as Process
  const [ttl, tokens, used] = [60_000, 100, 7]
  const receipts: Receipt[] = []
  for (let i = 0; i < 1_000; i++) {
    const expire = i % 3 === 1 ? 'refund' : 'charge'
    receipts.push(await cluster.settled(cluster.reserve(dying, 'key', { cost: { tokens }, ttl, expire })))
    if (i % 3 === 2) receipts.at(-1)?.used({ tokens: used })
  }
  await cluster.pass(3_000)
  const before = await cluster.usage('key')
  cluster.kill(dying)
  await cluster.pass(ttl + (AFTERWARDS[coordination] ?? 0))
  const after = await cluster.usage('key')
  cluster.stop()
  // One more in three is charged in full, because the first one is.
  const [full, reported] = [334, 333]
  return [
    atLeast('open before', receipts.filter(({ isOpen }) => isOpen).length, 1_000, 'requests'),
    difference('units counted while they are open, beside all', before - 1_000 * tokens),
    difference('units counted afterwards, beside the rules', after - (full * tokens + reported * used)),
  ]
}

/** A reservation, and what it counts by the rules. */
interface Entry {
  readonly key: number
  readonly cost: number
  readonly refunds: boolean
  receipt: Receipt | undefined
  used: number | undefined
  /** The units that it counts. Undefined while it is open. */
  result: number | undefined
  /** The moment of its last change. */
  changedAt: number
}

const PROCESSES = 4
const KEYS = 64
const TTLS = [5_000, 10_000, 20_000]
/** Virtual milliseconds between two rounds, and new reservations of a process in each. */
const PAUSE = 100
const ROUND = 8
/** Reservations between two crashes. */
const BETWEEN = 2_000
/** Reservations of a cluster. Each crash loses a lease until the interval ends, so one cluster can't have them all. */
const BATCH = 20_000
/** Milliseconds in which a change is certainly sent to the store. */
const SENT = 1_100
/** The most milliseconds from the choice of a process to its crash. */
const SOON = 400

/** A process that will crash. */
interface Doomed {
  readonly process: Process
  /** Whether it does nothing more, so that its counts are certain. */
  readonly quiet: boolean
  readonly at: number
  /** The moment in which all processes had to send their counts. */
  readonly askedAt: number
}

/** Many reservations of random costs, ends and use, while processes crash at random. Compares the store's counts with the rules. */
export async function crashing(coordination: Coordination, reservations: number, seed: number): Promise<readonly Figure[]> {
  const sum: Batch = { crashes: 0, rejected: 0, open: 0, above: 0, below: 0, least: 0, most: 0 }
  for (let done = 0, place = 0; done < reservations; done += BATCH, place++) {
    const part = await batch(coordination, Math.min(BATCH, reservations - done), 1_000 * seed + place)
    for (const name of Object.keys(sum) as (keyof Batch)[]) sum[name] += part[name]
  }
  return [
    atLeast('crashes', sum.crashes, Math.floor((0.8 * reservations) / BETWEEN), 'requests'),
    atMost('rejected', sum.rejected, 0, 'requests'),
    atMost('open at the end', sum.open, 0, 'requests'),
    atMost('units leaked', sum.above, 0, 'units'),
    atMost('units lost', sum.below, 0, 'units'),
    atMost('units in flight at a crash, of all', percent(1 - sum.least / sum.most), 15),
  ]
}

/** The counts of a cluster. */
interface Batch {
  crashes: number
  rejected: number
  /** Reservations of live processes that are open at the end. */
  open: number
  /** Units that the store counts above the rules, and below them. */
  above: number
  below: number
  /** All units that count by the rules. */
  least: number
  most: number
}

async function batch(coordination: Coordination, reservations: number, seed: number): Promise<Batch> {
  const cluster = await BudgetCluster.start([policyOf(coordination)], PROCESSES, seed)
  const random = cluster.random.stream('calls')
  const books = new Books()
  const entries = new Map<Process, Entry[]>(cluster.processes.map((process) => [process, []]))
  let doomed: Doomed | undefined
  let [made, rejected, crashes, nextCrash] = [0, 0, 0, BETWEEN]

  while (made < reservations) {
    for (const process of cluster.processes) {
      if (doomed?.quiet === true && doomed.process === process) continue
      const own = entries.get(process) as Entry[]
      for (let i = 0; i < ROUND && made < reservations; i++, made++) {
        const entry = newEntry(random, cluster.time.now)
        own.push(entry)
        const { key, cost, refunds } = entry
        const ttl = TTLS[random.below(TTLS.length)] as number
        void cluster
          .reserve(process, `key ${key}`, { cost: { tokens: cost }, ttl, expire: refunds ? 'refund' : 'charge' })
          .then((receipt) => {
            if (!receipt.allowed) rejected++
            entry.receipt = receipt
            entry.changedAt = cluster.time.now
          })
        for (let changes = 0; changes < 2; changes++)
          change(own[random.below(own.length)] as Entry, random.next(), random.next(), cluster.time.now)
      }
      entries.set(process, books.close(own, cluster.time.now))
    }
    await cluster.pass(PAUSE)
    if (made >= nextCrash) {
      nextCrash += BETWEEN
      const [process, quiet] = [cluster.processes[random.below(PROCESSES)] as Process, random.below(2) === 0]
      if (quiet) await cluster.pass(SENT)
      const askedAt = cluster.time.now
      await usageOf(cluster)
      doomed = { process, quiet, at: cluster.time.now + random.below(SOON), askedAt }
    }
    if (doomed !== undefined && cluster.time.now >= doomed.at) {
      books.crash(entries.get(doomed.process) as Entry[], doomed.askedAt - SENT)
      entries.delete(doomed.process)
      cluster.kill(doomed.process)
      doomed = undefined
      entries.set(await cluster.add(), [])
      crashes++
    }
  }
  await cluster.pass(Math.max(...TTLS) + (AFTERWARDS[coordination] ?? 0))
  const open = sumOf(cluster.processes.map(({ throttler }) => adapterOf(throttler).inspected.limiters[0]?.stats.reservations.open ?? 0))
  for (const own of entries.values()) books.end(own)
  const used = await usageOf(cluster)
  const above = used.map((units, key) => Math.max(0, units - (books.most[key] as number)))
  const below = used.map((units, key) => Math.max(0, (books.least[key] as number) - units))
  cluster.stop()
  return { crashes, rejected, open, above: sumOf(above), below: sumOf(below), least: sumOf(books.least), most: sumOf(books.most) }
}

function newEntry(random: SeededRandom, now: number): Entry {
  const [key, cost, refunds] = [random.below(KEYS), 1 + random.below(100), random.below(4) === 0]
  return { key, cost, refunds, receipt: undefined, used: undefined, result: undefined, changedAt: now }
}

/** Units that each key has used. Every process sends its counts for it. */
function usageOf(cluster: BudgetCluster): Promise<readonly number[]> {
  return cluster.settled(Promise.all(Array.from({ length: KEYS }, (_, key) => cluster.usage(`key ${key}`))))
}

/** Changes an open reservation at random. Some are never changed, and settle themselves. */
function change(entry: Entry, draw: number, share: number, now: number): void {
  const { receipt, cost } = entry
  if (receipt?.isOpen !== true) return
  const units = Math.floor(share * 1.2 * cost)
  if (draw < 0.3) {
    receipt.used({ tokens: units })
    entry.used = Math.max(entry.used ?? 0, units)
  } else if (draw < 0.7) {
    receipt.settle({ tokens: units })
    entry.result = units
  } else if (draw < 0.8) {
    receipt.settle()
    entry.result = entry.used ?? cost
  } else if (draw < 0.9) {
    receipt.cancel()
    entry.result = 0
  } else return
  entry.changedAt = now
}

/** The least and the most units that each key may have counted by the rules. */
class Books {
  readonly least: number[] = new Array<number>(KEYS).fill(0)
  readonly most: number[] = new Array<number>(KEYS).fill(0)

  /** Counts the reservations whose end the store has received. Returns the others. */
  close(entries: readonly Entry[], now: number): Entry[] {
    return entries.filter((entry) => {
      if (entry.result === undefined && entry.receipt?.isOpen === false) entry.result = dueOf(entry)
      if (entry.result === undefined || now - entry.changedAt <= SENT) return true
      this.#count(entry, entry.result, entry.result)
      return false
    })
  }

  /** Counts the reservations of a process that crashed. Changes since the moment `certain` may not have reached the store. */
  crash(entries: readonly Entry[], certain: number): void {
    for (const entry of entries) {
      const units = entry.result ?? dueOf(entry)
      if (entry.changedAt < certain) this.#count(entry, units, units)
      else this.#count(entry, 0, Math.max(units, entry.cost, entry.used ?? 0))
    }
  }

  /** Counts reservations after the last one has ended. */
  end(entries: readonly Entry[]): void {
    for (const entry of entries) this.#count(entry, entry.result ?? dueOf(entry), entry.result ?? dueOf(entry))
  }

  #count({ key }: Entry, least: number, most: number): void {
    this.least[key] = (this.least[key] as number) + least
    this.most[key] = (this.most[key] as number) + most
  }
}

/** The units that an open reservation counts at its end. */
function dueOf({ used, refunds, cost }: Entry): number {
  return used ?? (refunds ? 0 : cost)
}

function difference(name: string, units: number): Figure {
  return atMost(name, Math.abs(units), 0, 'units')
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
